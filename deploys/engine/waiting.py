"""Operations that wait: they show how far things are and change nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pyinfra import logger
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from deploys.engine import answers
from deploys.engine.commands import failure, report_failure
from deploys.engine.spans import waiting
from gpuboot.cluster.news import News
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import Patience

POLL_S = 0.5
_SLOWEST_S = 5.0


def wait_until(host: Host, probe: Callable[[], Progress], timeout_s: float) -> Progress:
    """Probe again and again until it is done, has failed or is too late, telling what changes.

    What is stuck for its time while nothing gets ready has failed; its reasons stay in `stuck`.

    + probe: reads the present state
    + timeout_s: seconds until the last probe
    """
    if answers.comparing():
        if not (progress := probe()).complete:
            raise answers.WouldChange
        return progress
    with answers.live():
        progress = probe()
        if not (progress.complete or progress.failed or timeout_s <= 0):
            with waiting(progress.text):
                progress = _wait(host, probe, progress, timeout_s)
    answers.forget_cluster()
    return progress


def _wait(
    host: Host, probe: Callable[[], Progress], progress: Progress, timeout_s: float
) -> Progress:
    started, probe_duration, patience = time.monotonic(), 0.0, Patience()
    news = News(logger.info)
    while True:
        now = time.monotonic()
        late = now - started >= timeout_s
        if progress.complete or progress.failed or late:
            return progress
        if given_up := patience.over(progress.stuck, progress.ready, now):
            reasons = "; ".join(dict.fromkeys(map(str, given_up)))
            text = f"after {now - started:.0f} s nothing more gets ready: {reasons}"
            return replace(progress, failed=True, text=text, stuck=tuple(given_up))
        news(f"{host.print_prefix}waiting: {progress.text}", f" ({now - started:.0f} s)")
        # a probe costs the host as well, and what takes long may be noticed a little later
        pause = max(POLL_S, 2 * probe_duration) * (1 + (now - started) / 120)
        time.sleep(min(pause, _SLOWEST_S))
        looked_at = time.monotonic()
        progress = probe()
        probe_duration = time.monotonic() - looked_at


def remedy_of(progress: Progress, default: str) -> str:
    """What to do about a wait that ended without success. + default: where nothing is stuck"""
    remedies = dict.fromkeys(item.remedy for item in progress.stuck if progress.failed)
    return f"{'; '.join(remedies)}; then run again" if remedies else default


def unfinished(progress: Progress, timeout_s: float, remedy: str) -> tuple[str, str]:
    """Cause and remedy of a wait that ended without success. + remedy: where nothing is stuck"""
    late = "" if progress.failed else f" after {timeout_s:.0f} s"
    return f"not done{late}: {progress.text}", remedy_of(progress, remedy)


def wait_or_fail(host: Host, probe: Callable[[], Progress], timeout_s: float, remedy: str) -> bool:
    """Wait, see `wait_until`, as the body of a FunctionCommand. False: it failed, and told why.

    + remedy: where nothing is stuck
    """
    try:
        end = wait_until(host, probe, timeout_s)
    except PyinfraError as error:
        return report_failure(host, failure(str(error), "run again"))
    return end.complete or report_failure(host, failure(*unfinished(end, timeout_s, remedy)))
