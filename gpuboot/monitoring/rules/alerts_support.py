"""Alerts on what publishers end: support of a version, and keys of package repositories."""

from __future__ import annotations

from gpuboot.config.support import END_METRIC, KEY_END_METRIC, NEAR_END_DAYS
from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.requirements import Requirement

_DAYS = '{{ $value | printf "%.0f" }} days are left.'

ALERTS = [
    Alert(
        name="VersionSupportEnding",
        severity="warning",
        component="cluster",
        expr="min by (key, version)"
        f' ({END_METRIC}{{key=~"(driver|kubernetes)[.]version"}} - time()) / 86400 < {{threshold}}',
        hold_for="1h",
        threshold=NEAR_END_DAYS,
        summary="Support of {{ $labels.key }} {{ $labels.version }} ends",
        description=_DAYS,
        requires=Requirement.TIMER_METRICS,
    ),
    Alert(
        name="RepositoryKeyExpiring",
        severity="warning",
        component="cluster",
        expr=f"min by (repository) ({KEY_END_METRIC} - time()) / 86400 < {{threshold}}",
        hold_for="1h",
        threshold=30,
        summary="The key of the {{ $labels.repository }} package repository ends",
        description=_DAYS,
        requires=Requirement.TIMER_METRICS,
    ),
]
