"""Alerts on what publishers end: support of a version, and keys of package repositories."""

from __future__ import annotations

from gpuboot.config.support import END_METRIC, KEY_END_METRIC, NEAR_END_DAYS
from gpuboot.monitoring.rules.alert import OWN_SOURCE, Alert
from gpuboot.monitoring.rules.requirements import Requirement

_DAYS = '{{ $value | printf "%.0f" }} days are left.'
_BY_TIMER = "`gpuboot drift` or `gpuboot outdated` with `--metrics`, by a timer (docs/lifecycle.md)"

ALERTS = [
    Alert(
        name="VersionSupportEnding",
        severity="warning",
        component="cluster",
        expr="min by (key, version)"
        f' ({END_METRIC}{{key=~"(driver|kubernetes)[.]version"}} - time()) / 86400 < {{threshold}}',
        hold_for="1h",
        threshold=NEAR_END_DAYS,
        unit="days",
        summary="Support of {{ $labels.key }} {{ $labels.version }} ends",
        description=_DAYS,
        source=f"the publishers' tables of releases; three months are {OWN_SOURCE}. Told by "
        f"{_BY_TIMER}",
        requires=Requirement.TIMER_METRICS,
    ),
    Alert(
        name="RepositoryKeyExpiring",
        severity="warning",
        component="cluster",
        expr=f"min by (repository) ({KEY_END_METRIC} - time()) / 86400 < {{threshold}}",
        hold_for="1h",
        threshold=30,
        unit="days",
        summary="The key of the {{ $labels.repository }} package repository ends",
        description=_DAYS,
        source=f"{OWN_SOURCE}. Keys of control planes are told by the timer of etcd's backups, all "
        f"others by {_BY_TIMER}",
        requires=Requirement.TIMER_METRICS,
    ),
]
