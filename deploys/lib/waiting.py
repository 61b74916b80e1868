"""Operations that wait: they show how far things are and change nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyinfra import logger
from pyinfra.api.command import FunctionCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.run import report
from gpuboot.kubernetes.readiness import Progress

POLL_S = 2.0
_SLOWEST_S = 5.0
_REPEAT_S = 20.0


def fail(message: str) -> FunctionCommand:
    """A command that fails its host with this message (cause and remedy), without a traceback."""
    return FunctionCommand(_fail, [message], {})


def failed(host: Host, message: str) -> bool:
    """Tell why a host fails. Returns the False by which a FunctionCommand's body says so."""
    report.note(host, message)
    host.log_styled(message, fg="red", log_func=logger.error)
    return False


def _fail(state: State, host: Host, message: str) -> bool:
    return failed(host, message)


def executing(host: Host) -> bool:
    """Whether the run is past its planning: only then is there something to wait for."""
    return bool(host.state.is_executing)


def watch(host: Host, look: Callable[[], Progress], timeout_s: float) -> Progress:
    """Look again and again until it is done, hopeless or too late, telling what changes.

    + look: reads the present state
    + timeout_s: seconds until the last look
    """
    started = told_at = time.monotonic()
    told = ""
    while True:
        progress = look()
        now = time.monotonic()
        late = now - started >= timeout_s
        if progress.done or progress.hopeless or late:
            return progress
        if progress.text != told or now - told_at >= _REPEAT_S:
            logger.info(f"{host.print_prefix}waiting: {progress.text} ({now - started:.0f} s)")
            told, told_at = progress.text, now
        # what takes long already may be noticed a little later: looking costs the host as well
        time.sleep(min(POLL_S * (1 + (now - started) / 20), _SLOWEST_S))


def describe(progress: Progress, timeout_s: float, remedy: str) -> str:
    """The error text of a wait that ended without success."""
    late = "" if progress.hopeless else f" after {timeout_s:.0f} s"
    return f"not done{late}: {progress.text}\n    remedy: {remedy}"
