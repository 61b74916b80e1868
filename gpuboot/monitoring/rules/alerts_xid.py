"""Alerts on XIDs: what the driver reports, by what it asks for."""

from __future__ import annotations

from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.alert import ON_GPU, Alert
from gpuboot.monitoring.rules.promql import GPU, SLICE
from gpuboot.monitoring.rules.recording_xid import INCIDENT, NEW, PRESENT, UNREPAIRED
from gpuboot.monitoring.rules.xid import CLASSES, FATAL, regex

_INSTANCE = "{{ if $labels.GPU_I_ID }}, MIG instance {{ $labels.GPU_I_ID }}{{ end }}"


def _by_program(codes: str) -> str:
    """New XIDs of these codes with each pod that holds the GPU; the value says how many do.

    When a pod goes the counter goes on without its name: that is no second XID. With time-slicing
    every pod that shares the GPU has its counter.
    """

    def counted(operator: str) -> str:
        return f'DCGM_EXP_XID_ERRORS_TOTAL{{xid=~"{codes}", pod{operator}""}}'

    labels = f"{SLICE}, xid"
    pods = f"max by ({labels}, namespace, pod) ({counted('!=')})"
    return (
        f"(\n  0 * {pods}\n"
        f"  + on ({labels}) group_left count by ({labels}) ({pods})\n"
        f"  or 0 * max by ({labels}) ({counted('=')})"
        f" unless on ({labels}) last_over_time({counted('!=')}[3m])\n)\n"
        f"and on ({labels}) {NEW}"
    )


_REPEATED = Alert(
    name="GPUXidRepeated",
    severity="warning",
    action="investigate",
    expr=f"max by ({GPU}) (resets({INCIDENT}[1d]) + last_over_time({INCIDENT}[1d]))"
    f" > {{threshold}} and on (node) {PRESENT}",
    threshold=5,
    summary=f"{ON_GPU} reports XIDs again and again",
    description='{{ $value | printf "%.0f" }} incidents in 24 hours on {{ $labels.UUID }}.',
)


def _application(codes: str) -> Alert:
    return Alert(
        name="GPUXidApplication",
        severity="info",
        expr=_by_program(codes),
        keep_for="10m",
        summary="XID {{ $labels.xid }} "
        "{{ if gt $value 1.0 }}in one of {{ $value }} pods, perhaps "
        "{{ else if $labels.pod }}in {{ end }}"
        "{{ if $labels.pod }}{{ $labels.namespace }}/{{ $labels.pod }}"
        f"{{{{ else }}}}on {ON_GPU}{{{{ end }}}}",
        description=f"The program on {ON_GPU}{_INSTANCE} did something the GPU refused. The "
        "GPU is fine.{{ if gt $value 1.0 }} {{ $value }} pods share it, and nothing tells "
        "which of them it was.{{ end }}",
    )


def alerts(settings: Settings) -> list[Alert]:
    """The alerts on XIDs, with the classes that these settings make."""
    overrides = settings.alerts.xid
    fatal, inspect = regex(FATAL, overrides), regex(("inspect",), overrides)
    application, known_codes = regex(("application",), overrides), regex(CLASSES, overrides)
    reboot = regex(("reboot",), overrides)
    return [
        Alert(
            name="GPUXidFatal",
            severity="critical",
            action=f'{{{{ if match "^({reboot})$" $labels.xid }}}}reboot'
            "{{ else }}reset{{ end }}",
            expr=f'{UNREPAIRED}{{xid=~"{fatal}"}} > 0',
            summary=f"XID {{{{ $labels.xid }}}} on {ON_GPU}",
            description="The driver reported a fault from which the GPU does not recover by "
            "itself, last at {{ $value | humanizeTimestamp }}. {{ $labels.UUID }}",
        ),
        _application(application),
        _REPEATED,
        Alert(
            name="GPUXidInspect",
            severity="warning",
            action="investigate",
            expr=f'{UNREPAIRED}{{xid=~"{inspect}"}} > 0\n'
            f'or {UNREPAIRED}{{xid!~"{known_codes}"}} > 0',
            summary=f"XID {{{{ $labels.xid }}}} on {ON_GPU} needs a person to look at it",
            description="NVLink, cabling, power, vGPU software, or a code that NVIDIA's catalog "
            "gives no action for. Last at {{ $value | humanizeTimestamp }}. {{ $labels.UUID }}",
        ),
    ]
