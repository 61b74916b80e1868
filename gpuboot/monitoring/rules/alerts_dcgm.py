"""Alerts on what DCGM's host engine says of GPUs when timers ask it, and on timers that do not."""

from __future__ import annotations

from gpuboot.hosts.dcgm_engine import DIAG_STALE_H, HEALTH_STALE_MIN
from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.promql import age
from gpuboot.monitoring.rules.requirements import Requirement
from gpuboot.monitoring.rules.watches import HOST_JUDGED

_HEALTH, _DIAG = "gpuboot_dcgm_health", "gpuboot_dcgm_diag"
_SUBJECT = (
    "{{ if $labels.gpu }}GPU {{ $labels.gpu }}{{ else }}{{ $labels.entity }}{{ end }} of "
    "{{ $labels.node }}"
)


def _age(metric: str, check: str) -> str:
    """Seconds since the last answer, with the label `check`."""
    oldest = f"max by (node) ({age(f'{metric}_timestamp_seconds')})"
    return f'label_replace({oldest}, "check", "{check}", "", "")'


def _severity_selector(severity: str) -> str:
    labels = "node, UUID, gpu, entity, health_watch, health_error_code"
    return f'max by ({labels}) ({HOST_JUDGED}{{judged="{severity}"}})'


_TWICE = "7m"  # asked every five minutes; errors of a moment are in one answer
ALERTS = [
    Alert(
        name="DCGMHealthFail",
        severity="critical",
        action="investigate",
        expr=_severity_selector("critical"),
        hold_for=_TWICE,
        summary=f"DCGM's host engine fails {{{{ $labels.health_watch }}}} of {_SUBJECT}",
        description="{{ $labels.health_error_code }}, by the last two `dcgmi health` on the node. "
        "{{ $labels.UUID }}",
        requires=Requirement.DCGM_ON_HOSTS,
    ),
    Alert(
        name="DCGMHealthWarn",
        severity="warning",
        action="investigate",
        expr=_severity_selector("warning"),
        hold_for="12m",
        summary=f"DCGM's host engine warns of {{{{ $labels.health_watch }}}} of {_SUBJECT}",
        description="{{ if $labels.health_error_code }}{{ $labels.health_error_code }}{{ else }}"
        "What DCGM says of it is not in gpuboot's table{{ end }}. {{ $labels.UUID }}",
        requires=Requirement.DCGM_ON_HOSTS,
    ),
    Alert(
        name="DCGMDiagFail",
        severity="warning",
        action="investigate",
        expr=f"max by (node, UUID, gpu, entity, test) ({_DIAG}) == 20",
        hold_for="2m",
        summary=f"DCGM's diagnosis fails {{{{ $labels.test }}}} on {_SUBJECT}",
        description="By the last `dcgmi diag -r 1` on the node. {{ $labels.UUID }}",
        requires=Requirement.DCGM_ON_HOSTS,
    ),
    Alert(
        name="DCGMCheckStale",
        severity="warning",
        component="exporter",
        expr=f"{_age(_HEALTH, 'health')} > 60 * {{threshold}}\n"
        f"or {_age(_DIAG, 'diag')} > 3600 * {DIAG_STALE_H}\n"
        "or label_replace(\n  max by (node) (node:gpu_expected:count) > 0\n"
        f'  unless on (node) {_HEALTH}_timestamp_seconds, "check", "health", "", ""\n)',
        hold_for="15m",
        threshold=HEALTH_STALE_MIN,
        summary="DCGM's host engine of {{ $labels.node }} does not answer for its "
        '{{ if eq $labels.check "diag" }}diagnosis{{ else }}health{{ end }}',
        description="What DCGM said last is old, or it never said anything: faults may go unseen.",
        requires=Requirement.DCGM_ON_HOSTS,
    ),
]
