"""Alerts on the verdict of driver and DCGM, and on heat, power and clocks."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import ON_GPU, Alert
from gpuboot.monitoring.rules.promql import GPU, level
from gpuboot.monitoring.rules.watches import GPU_JUDGED

_ACTION = "gpu:recovery_action:max"
_WATCH = "node, UUID, gpu, health_watch, health_error_code"
_VERDICT = [
    Alert(
        name="GPURecoveryAction",
        severity="critical",
        # a bus is reset by a reboot; what is unknown, and other machines' IMEX, is for a person
        action="{{ if or (eq $value 1.0) (eq $value 4.0) }}reset"
        "{{ else if or (eq $value 2.0) (eq $value 6.0) (eq $value 7.0) }}reboot"
        "{{ else if eq $value 3.0 }}drain{{ else }}investigate{{ end }}",
        # held here and not by `for`: another action is another alert, and would wait again
        expr=f"{_ACTION} > 0 and min_over_time({_ACTION}[90s]) > 0",
        summary=f"The driver wants {ON_GPU} to be "
        "{{ if eq $value 1.0 }}reset{{ else if eq $value 2.0 }}rebooted with its node"
        "{{ else if eq $value 3.0 }}drained of peer-to-peer traffic"
        "{{ else if eq $value 4.0 }}drained and reset{{ else }}recovered{{ end }}",
        description="Recovery action {{ $value }} of {{ $labels.UUID }}: 1 reset, 2 reboot, "
        "3 drain peer-to-peer, 4 drain and reset, 5 recover the IMEX domain, 6 reset the bus, "
        "7 reboot the system.",
    ),
    Alert(
        name="GPUHealthFail",
        severity="critical",
        action="investigate",
        expr=f'max by ({_WATCH}) ({GPU_JUDGED}{{judged="critical"}})',
        hold_for="2m",
        summary=f"DCGM's health watch {{{{ $labels.health_watch }}}} fails on {ON_GPU}",
        description="{{ $labels.health_error_code }}. {{ $labels.UUID }}. What came from an XID "
        "stays failed until the exporter restarts.",
    ),
    Alert(
        name="GPUHealthWarn",
        severity="warning",
        action="investigate",
        expr=f'max by ({_WATCH}) ({GPU_JUDGED}{{judged="warning"}})',
        hold_for="10m",
        summary=f"DCGM's health watch {{{{ $labels.health_watch }}}} warns of {ON_GPU}",
        description="{{ $labels.health_error_code }}{{ if eq $value 20.0 }}, which DCGM calls a "
        "failure{{ end }}. {{ $labels.UUID }}",
    ),
]

_RATIO = "gpu:throttle:ratio5m"
_EXPLAINED_SHARE = 0.1  # share of the time in which a reason explains a low clock
_THERMAL = [
    Alert(
        name="GPUThermalThrottle",
        severity="warning",
        action="investigate",
        expr=f'{_RATIO}{{reason="hw_thermal"}} > {{threshold}}\n'
        f'or {_RATIO}{{reason="sw_thermal"}} > 10 * {{threshold}}',
        hold_for="5m",
        threshold=0.01,
        summary=f"{ON_GPU} is slowed down by heat",
        description="{{ $value | humanizePercentage }} of the time, {{ $labels.reason }}. "
        "{{ $labels.UUID }}",
    ),
    Alert(
        name="GPUPowerBrake",
        severity="warning",
        action="investigate",
        expr=f'{_RATIO}{{reason="power_brake"}} > {{threshold}}',
        hold_for="5m",
        threshold=0.01,
        summary=f"The power brake slows {ON_GPU}",
        description="{{ $value | humanizePercentage }} of the time. The server's power supply asks "
        "for it. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPUThermalMarginLow",
        severity="warning",
        action="investigate",
        expr=level("DCGM_FI_DEV_GPU_TEMP_LIMIT") + " < {threshold}",
        hold_for="5m",
        threshold=5,
        summary=f"{ON_GPU} is close to slowing down for heat",
        description="{{ $value }} degrees are left. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPUMemoryHot",
        severity="warning",
        action="investigate",
        expr=level("DCGM_FI_DEV_MEMORY_TEMP")
        + " > ("
        + level("DCGM_FI_DEV_MEM_MAX_OP_TEMP")
        + " > 0)",
        hold_for="5m",
        summary=f"Memory of {ON_GPU} is too hot",
        description="{{ $value }} °C, above what its maker allows in operation. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPUClockStuckLow",
        severity="warning",
        action="reset",
        expr=level("DCGM_FI_DEV_SM_CLOCK")
        + "\n  / ("
        + level("DCGM_FI_DEV_MAX_SM_CLOCK")
        + f" > 0) < {{threshold}}\nand on ({GPU}) gpu:sm_active:avg5m > 0.5\n"
        + f'unless on ({GPU}) {_RATIO}{{reason!="sync_boost"}} > {_EXPLAINED_SHARE}\n'
        + f"unless on ({GPU}) floor({level('DCGM_FI_DEV_CLOCKS_EVENT_REASONS')} / 4) % 2 == 1",
        hold_for="15m",
        threshold=0.5,
        summary=f"{ON_GPU} works at {{{{ $value | humanizePercentage }}}} of its clock",
        description="It is busy, and its clock stays low. {{ $labels.UUID }}",
    ),
]

ALERTS = [*_VERDICT, *_THERMAL]
