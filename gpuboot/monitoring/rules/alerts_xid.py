"""Alerts on XIDs: what the driver reports, by what it asks for."""

from __future__ import annotations

from dataclasses import replace

from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.alert import (
    CATALOG,
    DRAIN,
    KERNEL_LOG,
    ON_GPU,
    OWN_SOURCE,
    PODS,
    REPLACE,
    RESET,
    SMI,
    VERIFY,
    Alert,
)
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


# What these ask for depends on the classes of XIDs: `alerts` fills it in.
_FATAL = Alert(
    name="GPUXidFatal",
    severity="critical",
    component="gpu",
    action="reset",
    expr="",
    summary=f"XID {{{{ $labels.xid }}}} on {ON_GPU}",
    description="The driver reported a fault from which the GPU does not recover by "
    "itself, last at {{ $value | humanizeTimestamp }}. {{ $labels.UUID }}",
    meaning="The NVIDIA driver reported an XID of class reboot, reset or nvlink. Programs "
    "on this GPU are gone or hang. The alert ends once the repair is visible, not because an "
    "exporter restarted: the node has booted, the driver was loaded or the GPU reset (its counters "
    "begin anew), or the driver no longer asks for what it asked; and neither driver nor DCGM "
    "reports a fault. Or the GPU has gone: the node shows as many as promised, has left inventory "
    "and cluster, or the GPU is shown by another node. Without another XID it ends after 24 hours.",
    reason="The GPU stays in the scheduler's pool and takes the next pod down as well. One "
    "such GPU stops a job that runs on hundreds.",
    check=(KERNEL_LOG, SMI, "What the driver asks for: `nvidia-smi -q -i UUID | grep -A4 "
           "'Recovery Action'`", PODS),
    remedy=(
        "Look the code up in the table below. 79, a GPU that fell off the bus, takes a "
        "reboot; the others a reset.",
        DRAIN,
        RESET,
        "NVLink codes (74, 150): reset all GPUs of the node together, or reboot.",
        VERIFY,
        "Repaired, but the alert stays: a reset that no counter shows (a vGPU has none). It ends "
        "with the next boot, or a day after the XID: silence it until then.",
        REPLACE,
    ),
    source=f"{CATALOG}; the counter of dcgm-exporter 4.8.3",
)  # fmt: skip
_APPLICATION = Alert(
    name="GPUXidApplication",
    severity="info",
    component="gpu",
    action="none",
    expr="",
    keep_for="10m",
    summary="XID {{ $labels.xid }} "
    "{{ if gt $value 1.0 }}in one of {{ $value }} pods, perhaps "
    "{{ else if $labels.pod }}in {{ end }}"
    "{{ if $labels.pod }}{{ $labels.namespace }}/{{ $labels.pod }}"
    f"{{{{ else }}}}on {ON_GPU}{{{{ end }}}}",
    description=f"The program on {ON_GPU}{_INSTANCE} did something the GPU refused. The "
    "GPU is fine.{{ if gt $value 1.0 }} {{ $value }} pods share it, and nothing tells "
    "which of them it was.{{ end }}",
    meaning="The driver reported an XID that is, nearly always, a mistake of the program "
    "on the GPU: an illegal address, a bad kernel, a corrupted command buffer.",
    reason="The pod's owner wants to know why it crashed. Nobody else does.",
    check=("The pod's log: `kubectl logs -n NAMESPACE POD --previous`", KERNEL_LOG,
           "Other XIDs of this GPU: `gpu:xid_errors:total{UUID=\"UUID\"}`"),
    remedy=(
        "Tell the pod's owner: code and time. `compute-sanitizer` finds the illegal "
        "access.",
        "Pods that share a GPU by time: the alert is there for each of them, and one of "
        "them did it. The kernel log has the process, `pid=` and `name=`.",
        "The alert names the pod that held the GPU when the XID was counted. If that pod "
        "is younger than the XID in the kernel log, its predecessor did it.",
        "Many different programs on the same GPU: see GPUXidRepeated.",
    ),
    source=CATALOG,
)  # fmt: skip
_REPEATED = Alert(
    name="GPUXidRepeated",
    severity="warning",
    component="gpu",
    action="investigate",
    expr=f"max by ({GPU}) (resets({INCIDENT}[1d]) + last_over_time({INCIDENT}[1d]))"
    f" > {{threshold}} and on (node) {PRESENT}",
    threshold=5,
    unit="incidents on one GPU in 24 hours",
    summary=f"{ON_GPU} reports XIDs again and again",
    description="{{ $value | printf \"%.0f\" }} incidents in 24 hours on "
    "{{ $labels.UUID }}.",
    meaning="One GPU reported XIDs more often in a day than a healthy one should, of "
    "whatever class. Counted are incidents, not lines: one crash often logs three XID 13 "
    "and a 109, all within seconds. Codes that only accompany others (45, also of programs "
    "that were killed; 154, 159, 171, 172) do not count.",
    reason="A failing GPU often first causes errors that look like mistakes of programs.",
    check=(
        "Which codes: `gpu:xid_errors:total{UUID=\"UUID\"}`; when: "
        "`gpu:xid_incident:active{UUID=\"UUID\"}` over a day",
        "One program or many: `count by (namespace, pod) (DCGM_EXP_XID_ERRORS_TOTAL"
        "{UUID=\"UUID\"})`",
        KERNEL_LOG,
    ),
    remedy=(
        "Always the same program, and on other GPUs too: its mistake. Tell its owner.",
        "Many programs, always this GPU: drain the node, run `dcgmi diag -r 3` on it, and "
        "act on what it finds.",
        VERIFY,
    ),
    source=f"NVSentinel's workflows for XID 13 and 31; the number is {OWN_SOURCE}",
)  # fmt: skip
_INSPECT = Alert(
    name="GPUXidInspect",
    severity="warning",
    component="gpu",
    action="investigate",
    expr="",
    summary=f"XID {{{{ $labels.xid }}}} on {ON_GPU} needs a person to look at it",
    description="NVLink, cabling, power, vGPU software, or a code that NVIDIA's catalog "
    "gives no action for. Last at {{ $value | humanizeTimestamp }}. {{ $labels.UUID }}",
    meaning="The driver reported an XID that no reset repairs (auxiliary power, vGPU, key "
    "rotation), one whose sub-code decides (144 to 149: NVLink 5), or one that has no class "
    "here. The alert lasts as GPUXidFatal does: until the GPU was repaired or has gone, or for a "
    "day.",
    reason="A code without a class would otherwise go unseen.",
    check=(KERNEL_LOG, SMI, "NVIDIA's catalog: "
           "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"),
    remedy=(
        "144 to 149: the kernel log has the sub-code (unit and error status). In NVIDIA's "
        "sheet \"XID 144-150 Decode\" 45 of the 93 ask for nothing, 40 for a reset, and 8 "
        "for what XID 154 says, which GPURecoveryAction tells. \"Nonfatal\" in the line: "
        "leave it. \"Fatal\": "
        "drain the node and reset its GPUs together.",
        "Other codes of the table below: as it says.",
        "Any other: read the catalog of the driver you run, decide on a class, and write "
        "it down: `\"alerts\": {\"xid\": {177: \"nvlink\"}}` in the settings.",
    ),
    source=CATALOG,
)  # fmt: skip


def alerts(settings: Settings) -> list[Alert]:
    """The alerts on XIDs, with the classes that these settings make."""
    overrides = settings.alerts.xid
    fatal, inspect = regex(FATAL, overrides), regex(("inspect",), overrides)
    application, known_codes = regex(("application",), overrides), regex(CLASSES, overrides)
    reboot = regex(("reboot",), overrides)
    return [
        replace(
            _FATAL,
            action=f'{{{{ if match "^({reboot})$" $labels.xid }}}}reboot'
            "{{ else }}reset{{ end }}",
            expr=f'{UNREPAIRED}{{xid=~"{fatal}"}} > 0',
        ),
        replace(_APPLICATION, expr=_by_program(application)),
        _REPEATED,
        replace(
            _INSPECT,
            expr=f'{UNREPAIRED}{{xid=~"{inspect}"}} > 0\n'
            f'or {UNREPAIRED}{{xid!~"{known_codes}"}} > 0',
        ),
    ]
