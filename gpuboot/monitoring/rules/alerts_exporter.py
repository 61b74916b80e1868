"""Alerts on GPUs that are not there, and on what keeps us from seeing them."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import (
    DRAIN,
    EXPORTER_LOG,
    KERNEL_LOG,
    OWN_SOURCE,
    REBOOT,
    REPLACE,
    VERIFY,
    Alert,
)
from gpuboot.monitoring.rules.promql import RESOURCES, UP, shown_by_exporter
from gpuboot.monitoring.rules.requirements import Requirement

_TARGET = 'Target: Prometheus, Status, Targets; or `up{job=~".*dcgm-exporter"}`'
_CAPACITY = f"kube_node_status_capacity{{{RESOURCES}}}"
_ALLOCATABLE = f"kube_node_status_allocatable{{{RESOURCES}}}"
_EXPECTED = "max by (node) (node:gpu_expected:count)"
_DOWN = f"(max by (node) ({UP}) == 0)"
_PLUGIN_LOG = (
    "The device plugin of that node: `kubectl get pods -A -o wide | grep device-plugin`, then "
    "`kubectl logs -n NAMESPACE POD`"
)

_GPUS = [
    Alert(
        name="GPULost",
        severity="critical",
        component="gpu",
        action="reboot",
        expr=f"{_EXPECTED}\n"
        f"  - max by (node) (node:gpu_visible:count or 0 * max by (node) ({UP} == 1)) > 0\n"
        f"or {_EXPECTED}\n"
        f"  - (last_over_time(node:gpu_visible:count[1d]) and on (node) {_DOWN}) > 0\n"
        f"or {_EXPECTED}\n"
        f"  - (node:gpu_allocatable:sum and on (node) {_DOWN}) > 0",
        hold_for="5m",
        summary="{{ $value }} GPUs of {{ $labels.node }} are missing",
        description="The inventory promises more GPUs than the exporter shows.",
        meaning="The exporter shows fewer GPUs (distinct UUIDs) than the inventory promises for "
        "the node: one, several or all of them are missing. While the exporter does not answer "
        "(GPUExporterDown), its last count and what the kubelet offers stand in for it, because a "
        "dead GPU can stop the exporter.",
        reason="A GPU that fell off the bus is gone until the node reboots, and may hang programs "
        "that used it. Lost capacity goes unnoticed for weeks unless it is counted.",
        check=("On the node: `nvidia-smi -L | wc -l` (driver) against "
               "`lspci -d 10de: | grep -c -E '3D|VGA'` (bus)",
               KERNEL_LOG, EXPORTER_LOG,
               "Were GPUs taken out on purpose? Compare `gpus` of the host in the inventory."),
        remedy=(
            "On the bus but not in nvidia-smi: the driver gave it up (XID 79 in the kernel log).",
            DRAIN,
            REBOOT,
            "Not on the bus after the reboot: power the machine off and on; then reseat the GPU.",
            VERIFY,
            REPLACE,
            "Taken out on purpose: correct `gpus` in the inventory and run "
            "`pyinfra INVENTORY deploys/site.py`.",
        ),
        source="Expected count from the inventory, by the rule node:gpu_expected:count",
    ),
    Alert(
        name="GPUDeviceUnhealthy",
        severity="critical",
        component="gpu",
        action="investigate",
        expr=f"sum by (node, resource) (max by (node, resource) ({_CAPACITY}))\n"
        f"  - sum by (node, resource) (max by (node, resource) ({_ALLOCATABLE})) > 0",
        # a plugin that has gone leaves the capacity for 5 min, and allocatable is 0 at once
        hold_for="7m",
        summary="{{ $value }} {{ $labels.resource }} of {{ $labels.node }} are unhealthy",
        description="The device plugin reported them to the kubelet as unhealthy; pods no longer "
        "get them.",
        meaning="The device plugin marked devices unhealthy, so the kubelet offers fewer than the "
        "node has. It does so for every XID but 13, 31, 43, 45, 68 and 109.",
        reason="It protects new pods from a broken GPU. But the plugin never takes it back: the "
        "devices stay out until the plugin restarts, even if the cause has long been repaired.",
        check=(_PLUGIN_LOG, "`kubectl describe node NODE | grep -A8 -E '^(Capacity|Allocatable)'`",
               KERNEL_LOG),
        remedy=(
            "An XID alert or GPURecoveryAction of the same node: do that first.",
            "Cause repaired: delete the device plugin's pod on that node; the next one checks "
            "all devices again.",
            VERIFY,
        ),
        requires=Requirement.KUBE_STATE_METRICS,
        source="kubelet's device manager (devicemanager/types.go, endpointStopGracePeriod: 5 min); "
        "NVIDIA's device plugin (health.go)",
    ),
    Alert(
        name="GPUDevicePluginMissing",
        severity="critical",
        component="gpu",
        action="investigate",
        expr='max by (node) (kube_node_labels{label_gpuboot_io_gpus!=""}'
        ' or kube_node_labels{label_nvidia_com_gpu_present="true"})\n'
        f"  unless on (node) {_ALLOCATABLE} > 0",
        hold_for="15m",
        summary="{{ $labels.node }} has GPUs and offers none",
        description="It is labelled as a GPU node, but nothing can be scheduled onto its GPUs.",
        meaning="The node is a GPU node by its labels, yet the kubelet has no allocatable GPU: the "
        "device plugin does not run there, or finds no GPU.",
        reason="The node's GPUs are lost to the scheduler as a whole, without any error elsewhere.",
        check=("`kubectl describe node NODE`", _PLUGIN_LOG,
               "On the node: `nvidia-smi`, and `cat /proc/driver/nvidia/version` against "
               "`modinfo -F version nvidia`"),
        remedy=(
            "nvidia-smi fails with a version mismatch: the driver was upgraded under a loaded "
            "module. Drain and reboot the node.",
            "nvidia-smi works: delete the device plugin's pod on that node.",
            "No plugin pod there: taints and node labels; `pyinfra INVENTORY deploys/site.py` puts "
            "both back.",
        ),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUDriverVersionSkew",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f"count({shown_by_exporter('DCGM_FI_DRIVER_VERSION')}) > {{threshold}}",
        hold_for="1h",
        threshold=1,
        unit="driver versions in the cluster",
        summary="{{ $value }} driver versions are in use",
        description="`count by (DCGM_FI_DRIVER_VERSION, node) (DCGM_FI_DEV_SM_CLOCK)` says where.",
        meaning="Not all nodes have loaded the same NVIDIA driver.",
        reason="Multi-node jobs with different drivers fail in odd ways. After an upgrade it is "
        "mostly a node that has not rebooted.",
        check=("`count by (DCGM_FI_DRIVER_VERSION, node) (DCGM_FI_DEV_SM_CLOCK)`",
               "On the odd node: `cat /proc/driver/nvidia/version`, `dpkg -l | grep nvidia`"),
        remedy=(
            "An upgrade is under way: silence this alert until it is done.",
            "Otherwise run `pyinfra INVENTORY deploys/site.py`: it installs what the lock says and "
            "reboots where the loaded driver differs.",
            "Two versions on purpose (old GPUs): raise the threshold.",
        ),
        source=OWN_SOURCE,
    ),
]  # fmt: skip

_EXPORTER = [
    Alert(
        name="GPUExporterDown",
        severity="warning",
        component="exporter",
        action="none",
        expr=f"max by (node) ({UP}) == 0",
        hold_for="5m",
        summary="The GPU exporter of {{ $labels.node }} does not answer",
        description="Until it answers, nothing is known of the node's GPUs: they may be healthy, "
        "or a dead one may have stopped the exporter.",
        meaning="Prometheus has a target for this node's exporter and gets no answer from it.",
        reason="All alerts on this node's GPUs are blind. It says nothing about the GPUs "
        "themselves.",
        check=(_TARGET, EXPORTER_LOG),
        remedy=(
            "CrashLoopBackOff with a message about counters: a field of "
            "`exporter.collectors_file` is unknown to this exporter.",
            "It cannot initialise DCGM or NVML: on the node, does `nvidia-smi` work, and does "
            "`nvidia-smi -L` show every GPU? If not, see GPULost.",
            "The pod runs and the target times out: NetworkPolicies, or a scrape takes longer than "
            "two thirds of `exporter.scrape_interval`.",
        ),
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUExporterAbsent",
        severity="critical",
        component="exporter",
        action="none",
        expr="(\n  count(node:gpu_expected:count and on (node) kube_node_info) > 0\n"
        "  or (count(node:gpu_expected:count) > 0 unless on () count(kube_node_info))\n"
        f") unless on () {UP}",
        hold_for="10m",
        summary="No GPU exporter is scraped at all",
        description="The inventory has GPUs, and Prometheus has no target for any of them.",
        meaning="Prometheus has no target for any exporter, although nodes with promised GPUs "
        "are there. `up == 0` cannot detect this: without a target there is no `up`.",
        reason="No GPU alert can fire.",
        check=("`kubectl get servicemonitor -A | grep dcgm`",
               "`kubectl get daemonset -A | grep dcgm-exporter`",
               "Prometheus, Status, Service Discovery: dropped targets and why"),
        remedy=(
            "No DaemonSet: `pyinfra INVENTORY deploys/site.py`.",
            "DaemonSet without pods: the node labels it selects are gone.",
            "No ServiceMonitor, or one that Prometheus does not select (label `release`): same "
            "command; look for values of your own that turn it off.",
        ),
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUNodeNotMonitored",
        severity="warning",
        component="exporter",
        action="none",
        expr=f"max by (node) ({_CAPACITY} > 0)\n  unless on (node) {UP}",
        hold_for="15m",
        summary="{{ $labels.node }} has GPUs that are not monitored",
        description="The kubelet offers GPUs; Prometheus has no exporter target on this node.",
        meaning="The node's GPUs are scheduled, but no exporter runs there.",
        reason="Faults of these GPUs raise no alert.",
        check=("`kubectl get pods -A -o wide | grep dcgm-exporter | grep NODE`",
               "`kubectl describe node NODE | grep -i taint`"),
        remedy=(
            "A taint that the exporter does not tolerate: add it to the exporter's tolerations by "
            "`gpu_operator.values`.",
            "A node that gpuboot does not know: add it to the inventory.",
        ),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUMetricsMissing",
        severity="critical",
        component="exporter",
        action="investigate",
        expr=f"max by (node) ({UP} == 1) unless on (node) node:gpu_visible:count",
        hold_for="5m",
        summary="The exporter of {{ $labels.node }} answers, without any GPU",
        description="DCGM sees nothing, or hangs.",
        meaning="The exporter is up and serves its page, but there is no GPU on it.",
        reason="It looks healthy from outside. Either the GPUs are gone or DCGM hangs.",
        check=(EXPORTER_LOG, "On the node: `nvidia-smi -L`; does it hang?", KERNEL_LOG),
        remedy=(
            "nvidia-smi works: delete the exporter's pod of that node.",
            "nvidia-smi hangs or shows nothing: see GPULost.",
        ),
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUExporterMissingCounters",
        severity="info",
        component="exporter",
        action="none",
        expr=f"max by (node) ({UP} == 1 and on (node) node:gpu_visible:count)\n"
        "  unless on (node) DCGM_EXP_GPU_HEALTH_STATUS",
        hold_for="30m",
        summary="The exporter of {{ $labels.node }} does not collect what the alerts need",
        description="Alerts on XIDs, health, ECC and NVLink cannot fire for this node.",
        meaning="The exporter runs with another collectors file than gpuboot's: a field that only "
        "ours names is missing.",
        reason="An alert on a metric that nobody collects never fires, and nobody notices.",
        check=("Its arguments: `kubectl get pod -n NAMESPACE POD -o yaml | grep -A9 args`",
               "`kubectl get configmap -A | grep -i metrics`"),
        remedy=(
            "`exporter.collectors_file` is set: add docs/metrics.md's fields, or leave it out.",
            "Otherwise `pyinfra INVENTORY deploys/site.py` puts our file back.",
        ),
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUOperatorDegraded",
        severity="warning",
        component="exporter",
        action="none",
        expr="max(gpu_operator_reconciliation_status) < 1",
        hold_for="15m",
        summary="The GPU Operator is not ready",
        description="Status {{ $value }}: 0 an operand is not ready, below 0 it failed.",
        meaning="The operator cannot bring its operands (device plugin, exporter, validator …) "
        "into the state that its ClusterPolicy asks for.",
        reason="New nodes get no GPU stack, and repairs of operands do not happen.",
        check=("`kubectl get clusterpolicy`", "`kubectl get pods -n gpu-operator`",
               "`kubectl logs -n gpu-operator deployment/gpu-operator --tail=50`"),
        remedy=("Its log names the operand; look at that operand's pod. Then run "
                "`pyinfra INVENTORY deploys/site.py`, which waits for it.",),
        requires=Requirement.GPU_OPERATOR,
        source="gpu-operator v26.7.0; upstream ships such rules for OpenShift only",
    ),
]  # fmt: skip

ALERTS = [*_GPUS, *_EXPORTER]
