"""What an alert is: the rule Prometheus evaluates, and the page a person reads when it fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuboot.config.settings.alerting import Severity
from gpuboot.monitoring.rules.requirements import Requirement

Component = Literal["gpu", "exporter", "cluster"]
# What brings the GPU back, for people and for automatic repair. `capacity`: more GPUs, or less
# demand. `none`: nothing is wrong with the GPU.
Action = Literal["none", "investigate", "drain", "reset", "reboot", "replace", "capacity"]


@dataclass(frozen=True)
class Alert:
    """One alert.

    + name: unique; also the name of its runbook
    + severity: critical: wakes somebody; warning: this working day; info: to be read some time
    + component: what it is about, for routes and inhibitions
    + action: an `Action`, or a Prometheus template that makes one of the alert's labels
    + expr: PromQL; `{threshold}` stands for the threshold
    + hold_for: how long it must hold before it fires
    + keep_for: how long it stays on after it ended ("" : not)
    + threshold, unit: the number that a site may change, and what it counts
    + summary, description: one line, and what to know at once; Prometheus templates
    + meaning, reason: the runbook's first two paragraphs
    + check, remedy: the runbook's steps, Markdown, one list item each
    + source: where rule and number come from
    + requires: what it can never fire without
    + enabled: False where the settings leave it out
    """

    name: str
    severity: Severity
    component: Component
    action: str
    expr: str
    summary: str
    description: str
    meaning: str
    reason: str
    check: tuple[str, ...]
    remedy: tuple[str, ...]
    source: str
    hold_for: str = "0s"
    keep_for: str = ""
    threshold: float | None = None
    unit: str = ""
    requires: Requirement = Requirement.NONE
    enabled: bool = True


def number(value: float) -> str:
    """A threshold as PromQL and people write it: 5 rather than 5.0."""
    return f"{value:g}"


# The way to every GPU alert's labels in a sentence.
ON_GPU = "GPU {{ $labels.gpu }} of {{ $labels.node }}"

KERNEL_LOG = "Kernel log, on the node: `journalctl -k --since -2h | grep -E 'NVRM|Xid'`"
SMI = "What the GPU reports, on the node: `nvidia-smi -q -i UUID` (UUID: label of the alert)"
PODS = (
    "Pods on the node: `kubectl get pods -A -o wide --field-selector spec.nodeName=NODE`; pods "
    "that hold this GPU: "
    '`max by (namespace, pod) (DCGM_FI_DEV_GPU_TEMP{UUID="UUID", pod!=""})`'
)
EXPORTER_LOG = (
    "The exporter of that node: `kubectl get pods -A -o wide | grep dcgm-exporter`, then "
    "`kubectl logs -n NAMESPACE POD --previous` and without `--previous`"
)
DRAIN = (
    "Stop new pods and move the others: `kubectl cordon NODE`, then "
    "`kubectl drain NODE --ignore-daemonsets --delete-emptydir-data`. It waits for "
    "PodDisruptionBudgets; tell the owners before you force anything."
)
RESET = (
    "Reset. First stop what has the GPU open: under the GPU Operator "
    "`kubectl label node NODE nvidia.com/gpu.deploy.operands=false`, and on the node "
    "`systemctl stop nvidia-persistenced`, and `nvidia-dcgm` where that runs. Then, on the node, "
    "`nvidia-smi --gpu-reset -i UUID`; on NVSwitch systems all GPUs together, "
    "`nvidia-smi --gpu-reset`. Afterwards start again what you stopped, and "
    "`kubectl label node NODE nvidia.com/gpu.deploy.operands-`. If the reset is refused, or in a "
    "hurry: `systemctl reboot` has the same effect."
)
REBOOT = "Reboot the node: `systemctl reboot`."
VERIFY = (
    "Verify: `gpuboot verify INVENTORY` must show no failed link on the node (while it is "
    "cordoned, the workload link is *not covered*). Then `kubectl uncordon NODE` and verify "
    "again: if a GPU fails, cordon the node again."
)
REPLACE = (
    "If the fault comes back after that, leave the node cordoned and have the GPU replaced; "
    "attach the output of `nvidia-bug-report.sh` to the request."
)
RESET_STEPS = (DRAIN, RESET, VERIFY, REPLACE)
CATALOG = "NVIDIA's XID catalog (docs.nvidia.com/deploy/xid-errors)"
DCGM = "DCGM 4.5 (health watches and limits)"
OWN_SOURCE = "ours"
