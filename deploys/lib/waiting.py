"""Operations that wait: they show how far things are and change nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyinfra import logger
from pyinfra.api.host import Host

from deploys.lib import answers
from deploys.lib.spans import waiting
from gpuboot.kubernetes.readiness import Progress

POLL_S = 0.5
_SLOWEST_S = 5.0
_REPEAT_S = 20.0


def wait_until(host: Host, probe: Callable[[], Progress], timeout_s: float) -> Progress:
    """Probe again and again until it is done, has failed or is too late, telling what changes.

    + probe: reads the present state
    + timeout_s: seconds until the last probe
    """
    if answers.comparing():
        if not (progress := probe()).done:
            raise answers.WouldChange
        return progress
    with answers.live():
        progress = probe()
        if not (progress.done or progress.failed or timeout_s <= 0):
            with waiting(progress.text):
                progress = _wait(host, probe, progress, timeout_s)
    answers.forget_cluster()
    return progress


def _wait(
    host: Host, probe: Callable[[], Progress], progress: Progress, timeout_s: float
) -> Progress:
    started = last_reported_at = time.monotonic()
    last_reported, took = "", 0.0
    while True:
        now = time.monotonic()
        late = now - started >= timeout_s
        if progress.done or progress.failed or late:
            return progress
        if progress.text != last_reported or now - last_reported_at >= _REPEAT_S:
            logger.info(f"{host.print_prefix}waiting: {progress.text} ({now - started:.0f} s)")
            last_reported, last_reported_at = progress.text, now
        # a probe costs the host as well, and what takes long may be noticed a little later
        pause = max(POLL_S, 2 * took) * (1 + (now - started) / 120)
        time.sleep(min(pause, _SLOWEST_S))
        looked_at = time.monotonic()
        progress = probe()
        took = time.monotonic() - looked_at


def unfinished(progress: Progress, timeout_s: float) -> str:
    """The cause to tell of a wait that ended without success."""
    late = "" if progress.failed else f" after {timeout_s:.0f} s"
    return f"not done{late}: {progress.text}"
