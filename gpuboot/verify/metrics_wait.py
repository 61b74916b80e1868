"""Waits until metrics tell what is true now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from gpuboot.cluster.news import News
from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.verify.blocked import Source
from gpuboot.verify.evidence import Metrics
from gpuboot.verify.findings import Finding
from gpuboot.verify.workload import Progress

_POLL_S = 1.0
_MIN_SETTLE_S = 45.0
# how long a source must have been blocked: controllers try again within seconds
_BLOCKED_S = 8.0
# the links of findings that only an answer of a source can change
_LINKS: Mapping[Source, frozenset[str]] = {
    "exporter": frozenset({"exporter", "prometheus", "attribution"}),
    "prometheus": frozenset(
        {"prometheus", "attribution", "targets", "rules", "alertmanager", "alerting", "storage"}
    ),
    "alertmanager": frozenset({"alertmanager", "alerting", "storage"}),
    "grafana": frozenset({"dashboards"}),
}


def settle_s(settings: Settings) -> float:
    """How long metrics may take to tell what is true now: a few sampling and scrape periods."""
    exporter = settings.exporter
    periods = 3 * (seconds(exporter.scrape_interval) + exporter.interval_ms / 1000)
    scrapes_s = 2 * seconds(settings.monitoring.scrape_interval)
    return min(float(settings.verify.timeout_s), max(_MIN_SETTLE_S, periods, scrapes_s))


def wait_for_metrics(
    probe: Callable[[], list[Finding]],
    timeout: Callable[[Sequence[Finding]], float],
    progress: Progress,
    is_hopeless: Callable[[Finding], bool],
) -> None:
    """Read metrics until every check passes, the time is up, or nothing is left to wait for.

    + probe: reads them again and evaluates them
    + is_hopeless: whether an open finding waits for what cannot come
    + timeout: how many seconds after the start such open findings are still waited for; once
      granted, they stay granted
    """
    started = until = time.monotonic()
    blocked_since: float | None = None
    news = News(progress)
    while True:
        findings = probe()
        open_ = [item for item in findings if item.status in {"fail", "unknown"}]
        now = time.monotonic()
        until = max(until, started + timeout(open_))
        if not open_ or now > until:
            return
        if not all(map(is_hopeless, open_)):
            blocked_since = None
        elif blocked_since is None:
            blocked_since = now
        elif now - blocked_since >= _BLOCKED_S:
            return
        news(_waiting(open_, len(findings), now - started, until - now))
        time.sleep(_POLL_S)


def is_hopeless(finding: Finding, metrics: Metrics) -> bool:
    """Whether a finding waits for a source of metrics whose pods cannot be."""
    sources = {source for source in metrics.blocked if finding.link in _LINKS[source]}
    if sources == {"exporter"}:  # it may answer on other nodes
        return finding.node not in {scrape.node for scrape in metrics.exporters}
    return bool(sources)


def _waiting(open_: Sequence[Finding], total: int, elapsed: float, remaining_s: float) -> str:
    first = open_[0]
    prefix = f"{first.node} " if first.node else ""
    return (
        f"metrics: {total - len(open_)} of {total} checks passed after {elapsed:.0f} s, at most "
        f"{remaining_s:.0f} s more; waiting for {prefix}{first.link}: {first.detail}"
    )
