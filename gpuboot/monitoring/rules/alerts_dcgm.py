"""Alerts on what DCGM's host engine says of GPUs when timers ask it, and on timers that do not."""

from __future__ import annotations

from gpuboot.hosts.dcgm import DIAG_STALE_H, HEALTH_STALE_MIN, PROGRAM, RESULTS
from gpuboot.monitoring.rules.alert import (
    KERNEL_LOG,
    OWN_SOURCE,
    REPLACE,
    RESET_STEPS,
    SMI,
    VERIFY,
    Alert,
)
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
_CHECK_STEP = (
    f"What DCGM says of it, on the node: `jq . {RESULTS}/{{}}.json`; now: "
    f"`{PROGRAM} {{}}`, which prints one line for each finding"
)
ALERTS = [
    Alert(
        name="DCGMHealthFail",
        severity="critical",
        component="gpu",
        action="investigate",
        expr=_severity_selector("critical"),
        hold_for=_TWICE,
        summary=f"DCGM's host engine fails {{{{ $labels.health_watch }}}} of {_SUBJECT}",
        description="{{ $labels.health_error_code }}, by the last two `dcgmi health` on the node. "
        "{{ $labels.UUID }}",
        meaning="Every five minutes each GPU node asks DCGM's host engine for the health of its "
        "GPUs and NVSwitches, and one of them has had a FAIL twice, by which cards of this model "
        "are broken (docs/dcgm.md). GPUHealthFail says the same by the exporter, which also reads "
        "this engine; this alert does not need the exporter.",
        reason="DCGM fails a GPU for faults with which NVIDIA considers it unusable.",
        check=(_CHECK_STEP.format("health", "health"), KERNEL_LOG, SMI),
        remedy=(
            "Another alert on the same GPU says more: follow its runbook first.",
            "An NVSwitch: `systemctl status nvidia-fabricmanager` and its log; then as below, with "
            "all GPUs of the machine.",
            *RESET_STEPS[:-1],
            "`systemctl restart nvidia-dcgm`: DCGM keeps its verdict on an XID until its engine "
            "restarts, whatever was repaired.",
            REPLACE,
        ),
        requires=Requirement.DCGM_ON_HOSTS,
        source="DCGM 4.6 (dcgmi health)",
    ),
    Alert(
        name="DCGMHealthWarn",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=_severity_selector("warning"),
        hold_for="12m",
        summary=f"DCGM's host engine warns of {{{{ $labels.health_watch }}}} of {_SUBJECT}",
        description="{{ if $labels.health_error_code }}{{ $labels.health_error_code }}{{ else }}"
        "What DCGM says of it is not in gpuboot's table{{ end }}. {{ $labels.UUID }}",
        meaning="For ten minutes or more, `dcgmi health` has told of something that does not stop "
        "the GPU but should not be, or that gpuboot's table of DCGM's results does not have "
        "(docs/dcgm.md). `None 0` is the machine itself: its IMEX daemon, for NVLink between "
        "machines, does not get ready.",
        reason="Warnings become failures. There is time to look.",
        check=(_CHECK_STEP.format("health", "health"), KERNEL_LOG, SMI),
        remedy=("IMEX: `systemctl status nvidia-imex` and `nvidia-imex-ctl -N`; all nodes of its "
                "domain have to reach each other. Where jobs bring their own IMEX daemons, switch "
                "that of the host off.",
                "NVLink errors since the last reset, of a model that the table does not have: see "
                "whether they rise, by `nvidia-smi nvlink -e`."),
        requires=Requirement.DCGM_ON_HOSTS,
        source="DCGM 4.6 (dcgmi health)",
    ),
    Alert(
        name="DCGMDiagFail",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f"max by (node, UUID, gpu, entity, test) ({_DIAG}) == 20",
        hold_for="2m",
        summary=f"DCGM's diagnosis fails {{{{ $labels.test }}}} on {_SUBJECT}",
        description="By the last `dcgmi diag -r 1` on the node. {{ $labels.UUID }}",
        meaning="Once a day each GPU node runs DCGM's quick diagnosis, which puts no load on GPUs: "
        "libraries, permissions, and what GPUs keep of faults (retired pages, row remaps, "
        "inforom). One test fails. Mere settings of the node, such as persistence mode, are no "
        "failure here.",
        reason="What it finds keeps programs from the GPU, or is a fault that a reset or a repair "
        "has to end.",
        check=(_CHECK_STEP.format("diag", "diag"), SMI, KERNEL_LOG),
        remedy=("It names a library, a permission or an environment variable: correct that on the "
                "node.",
                "It names memory, pages, rows or the inforom: " + RESET_STEPS[0], RESET_STEPS[1],
                f"Try it again: `{PROGRAM} diag`. A longer one needs a drained node: "
                "docs/deep.md.", VERIFY, REPLACE),
        requires=Requirement.DCGM_ON_HOSTS,
        source="DCGM 4.6 (dcgmi diag, run level 1)",
    ),
    Alert(
        name="DCGMCheckStale",
        severity="warning",
        component="exporter",
        action="none",
        expr=f"{_age(_HEALTH, 'health')} > 60 * {{threshold}}\n"
        f"or {_age(_DIAG, 'diag')} > 3600 * {DIAG_STALE_H}\n"
        "or label_replace(\n  max by (node) (node:gpu_expected:count) > 0\n"
        f'  unless on (node) {_HEALTH}_timestamp_seconds, "check", "health", "", ""\n)',
        hold_for="15m",
        threshold=HEALTH_STALE_MIN,
        unit="minutes since DCGM last answered for its health",
        summary="DCGM's host engine of {{ $labels.node }} does not answer for its "
        "{{ if eq $labels.check \"diag\" }}diagnosis{{ else }}health{{ end }}",
        description="What DCGM said last is old, or it never said anything: faults may go unseen.",
        meaning="Timers on each GPU node ask DCGM's host engine for health every five minutes, and "
        f"for a diagnosis every day. For longer than the threshold (a diagnosis: {DIAG_STALE_H} "
        "hours) there was no answer that could be read, or Prometheus knows of none. The age is by "
        "the node's own clock; a time to come counts like one that has gone (see NodeClockWrong).",
        reason="DCGMHealthFail and DCGMDiagFail go by the last answer: an old one says nothing.",
        check=("On the node: `systemctl status nvidia-dcgm gpuboot-dcgm-health.timer "
               "gpuboot-dcgm-diag.timer`",
               "Why there was no answer: `journalctl -n 20 -u gpuboot-dcgm-health -u "
               "gpuboot-dcgm-diag`",
               f"By hand: `{PROGRAM} health`"),
        remedy=("The engine does not answer, or lists no GPU: `systemctl restart nvidia-dcgm`; one "
                "that started before the driver stays without GPUs until then.",
                "The timers are gone or stopped: `pyinfra INVENTORY deploys/site.py`.",
                "Answers are there and Prometheus knows of none: node-exporter does not run, or "
                "`monitoring.values` has other arguments for it, without the folder.", VERIFY),
        requires=Requirement.DCGM_ON_HOSTS,
        source=OWN_SOURCE,
    ),
]  # fmt: skip
