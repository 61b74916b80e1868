"""Alerts on how GPUs are used: held but idle, asked for but not there."""

from __future__ import annotations

import re

from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.alert import ON_GPU, OWN_SOURCE, PODS, Alert
from gpuboot.monitoring.rules.promql import (
    DEVICE,
    ENGINE,
    GAP,
    GPU,
    HOLDER,
    RESOURCES,
    now_and,
    quoted,
)
from gpuboot.monitoring.rules.requirements import Requirement

_MORE_GPUS = (
    "Add GPUs, or free some: those that are held idle are the cheapest to get (GPUAllocatedIdle)."
)
_QUERY = "How busy each GPU is: `gpu:engine_active:avg5m`; by pod: `namespace_pod:sm_active:avg2m`"


def alerts(settings: Settings) -> list[Alert]:
    """The alerts on use; full memory only in the namespaces that the settings name."""
    return [*_IDLE, _WITHOUT_A_POD, _memory(settings.alerts.gpu_memory_near_full), *_DEMAND]


_POD_ENGINE = now_and("avg_over_time", ENGINE, 'pod!=""', "30m")
_PER_POD = f"max by ({HOLDER}) ({_POD_ENGINE})"
_IDLE = [
    Alert(
        name="GPUAllocatedIdle",
        severity="warning",
        component="gpu",
        action="none",
        expr="max by (node, UUID, gpu, GPU_I_ID, namespace, pod) (gpu:engine_active:max1h)"
        " < {threshold}",
        threshold=0.01,
        unit="highest activity of any sample within the hour, 0 to 1",
        summary="{{ $labels.namespace }}/{{ $labels.pod }} holds a GPU and does not use it",
        description="Nothing ran on {{ $labels.UUID }} of {{ $labels.node }} for an hour.",
        meaning="A pod has held this GPU for an hour, and no sample shows anything running on "
        "it. Bursts count: the highest sample decides, not the mean. Left out are GPUs that no "
        "pod holds, hours with too few samples (somebody profiles), and pods younger than an "
        "hour, whatever an earlier pod of the same name did.",
        reason="It costs as much as a GPU that works, and others wait for it.",
        check=(_QUERY, "The pod: `kubectl describe pod -n NAMESPACE POD`, `kubectl logs -n "
               "NAMESPACE POD --tail=20`"),
        remedy=("Ask its owner. Often: a notebook left open, a service without requests, a job "
                "that waits for something else.",
                "A service that must stand by: switch the alert off for it by an Alertmanager "
                "silence on namespace and pod."),
        requires=Requirement.POD_LABELS,
        source=f"{OWN_SOURCE}; GR_ENGINE_ACTIVE, since GPU_UTIL does not exist under MIG",
    ),
    Alert(
        name="GPUStraggler",
        severity="info",
        component="gpu",
        action="none",
        expr=f"avg by (namespace, pod) ({_PER_POD})\n"
        f"  - min by (namespace, pod) ({_PER_POD}) > {{threshold}}",
        hold_for="15m",
        threshold=0.3,
        unit="mean less lowest activity of the pod's GPUs over 30 minutes, 0 to 1",
        summary="One GPU of {{ $labels.namespace }}/{{ $labels.pod }} lags behind",
        description="{{ $value | humanizePercentage }} less busy than the pod's GPUs on average.",
        meaning="Among the GPUs of one pod, one is much less busy than the mean.",
        reason="In data parallel work all wait for the slowest; or one GPU is not used at all.",
        check=('`gpu:engine_active:avg5m{namespace="NAMESPACE", pod="POD"}`',
               "Is the one that lags throttled? `gpu:throttle:ratio5m{UUID=\"UUID\"}`"),
        remedy=("Throttled or with a low clock: GPUThermalThrottle, GPUClockStuckLow.",
                "Otherwise it is how the program splits its work: tell its owner."),
        requires=Requirement.POD_LABELS,
        source=OWN_SOURCE,
    ),
]  # fmt: skip


_ACTIVITY = "gpu:engine_active:avg5m"
# a pod that has just ended counts: activity is a mean of five minutes
_HOLDS = f'max_over_time({_ACTIVITY}{{pod!=""}}[{GAP}])'


def _unheld(matcher: str, by: str) -> str:
    """Busy GPUs or instances that no pod holds. + by: labels by which a pod's own is the same"""
    busy = f"max by ({GPU}, GPU_I_ID) ({_ACTIVITY}{{{matcher}}}) > {{threshold}}"
    return f"({busy} unless on ({by}) {_HOLDS})"


# Where every GPU that the scheduler has given away is named by a pod's labels, one without them is
# held by none. Elsewhere (an exporter that names no pods, pods that are starting) nothing is known.
_ALL_NAMED = (
    f'(count by (node) (group by (namespace, pod, {DEVICE}) ({_ACTIVITY}{{pod!=""}}))\n'
    "    or on (node) 0 * node:gpu_requested:sum) >= on (node) node:gpu_requested:sum"
)
_WITHOUT_A_POD = Alert(
    name="GPUUsedWithoutPod",
    severity="warning",
    component="gpu",
    action="none",
    # with MIG the whole GPU may have a series beside those of its instances
    expr=f"""({_unheld('GPU_I_ID=""', "node, UUID")}\n"""
    f"""  or {_unheld('GPU_I_ID!=""', DEVICE)})\n"""
    f"  and on (node) ({_ALL_NAMED})",
    hold_for="30m",
    threshold=0.05,
    unit="activity, mean of 5 minutes, 0 to 1",
    summary=f"{ON_GPU} computes for no pod that was given it",
    description="{{ $value | humanizePercentage }} busy, while no pod holds {{ $labels.UUID }}.",
    meaning="Something has computed on this GPU for half an hour, and no pod was given it: "
    "a process of the host, a privileged pod, or a pod that started before only privileged "
    "containers could choose GPUs. Nothing is said where pods' labels are missing on the node, "
    "while pods are starting there, nor of a process that only holds memory.",
    reason="The scheduler gives the GPU to the next pod all the same: both share its memory and "
    "time. Quotas and costs know nothing of it.",
    check=(
        "Processes, on the node: `nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name "
        "--format=csv`",
        "Whose: `cat /proc/PID/cgroup` has the UID of a pod behind `pod`, with `_` for `-`, or "
        "names a service of the host",
        "Which pod has that UID: `kubectl get pods -A -o custom-columns=UID:.metadata.uid,"
        "NS:.metadata.namespace,NAME:.metadata.name`",
    ),
    remedy=(
        "A pod: delete it, so that it starts anew with what it was given; one that is "
        "privileged should request the GPUs that it uses.",
        "Can any pod do so? `gpuboot verify INVENTORY`: its link `isolation` tells.",
        "A process of the host: stop it, or cordon the node while somebody works there.",
    ),
    requires=Requirement.POD_LABELS | Requirement.KUBE_STATE_METRICS,
    source=OWN_SOURCE,
)


def _memory(namespaces: tuple[str, ...]) -> Alert:
    pattern = quoted("|".join(map(re.escape, namespaces)))
    return Alert(
        name="GPUMemoryNearFull",
        severity="info",
        component="gpu",
        action="none",
        expr="max by (node, UUID, gpu, GPU_I_ID, namespace, pod) "
        f"(gpu:memory_used:ratio{{namespace=~{pattern}}}) > {{threshold}}",
        hold_for="15m",
        threshold=0.97,
        unit="share of the device memory",
        summary="GPU memory of {{ $labels.namespace }}/{{ $labels.pod }} is nearly full",
        description="{{ $value | humanizePercentage }} of {{ $labels.UUID }}.",
        meaning="The device memory is nearly used up, in a namespace that asked for this alert "
        "(`alerts.gpu_memory_near_full`). Without that setting the alert does not exist: inference "
        "servers such as vLLM take all memory by design.",
        reason="The next allocation fails with an out-of-memory error.",
        check=('`gpu:memory_used:ratio{namespace="NAMESPACE"}`', PODS),
        remedy=("Smaller batches, or a GPU with more memory. Growth over days: a leak.",),
        requires=Requirement.POD_LABELS,
        source=OWN_SOURCE,
        enabled=bool(namespaces),
    )


_REQUESTED = f"kube_pod_container_resource_requests{{{RESOURCES}}}"
_DEMAND = [
    Alert(
        name="GPUPodPending",
        severity="warning",
        component="gpu",
        action="capacity",
        expr="max by (namespace, pod) (kube_pod_status_unschedulable == 1)\n"
        f"  and on (namespace, pod) sum by (namespace, pod) ({_REQUESTED}) > 0",
        hold_for="15m",
        summary="{{ $labels.namespace }}/{{ $labels.pod }} waits for a GPU",
        description="The scheduler has found no node for it for a quarter of an hour.",
        meaning="A pod asks for GPUs and cannot be scheduled.",
        reason="Demand is not met; or the pod asks for what no node can ever give.",
        check=("Why: `kubectl describe pod -n NAMESPACE POD | tail`",
               "Free GPUs by node: `node:gpu_allocatable:sum - node:gpu_requested:sum`",
               "Cordoned: `kubectl get nodes | grep SchedulingDisabled`"),
        remedy=("More GPUs than any one node has free: fragmentation; drain small jobs together.",
                "\"untolerated taint\" or \"didn't match node selector\": the pod's own mistake.",
                "GPUs lost: see GPULost and GPUDeviceUnhealthy.",
                _MORE_GPUS),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUQuotaFull",
        severity="info",
        component="gpu",
        action="capacity",
        expr='max by (namespace, resourcequota, resource) '
        '(kube_resourcequota{resource=~"requests.nvidia.com/.+", type="used"})\n'
        "  / max by (namespace, resourcequota, resource) "
        '(kube_resourcequota{resource=~"requests.nvidia.com/.+", type="hard"}) >= {threshold}',
        hold_for="30m",
        threshold=1,
        unit="share of the quota",
        summary="The GPU quota of {{ $labels.namespace }} is used up",
        description="Quota {{ $labels.resourcequota }}, {{ $labels.resource }}.",
        meaning="The namespace uses all GPUs that its ResourceQuota grants.",
        reason="New pods are refused when they are made; their owners may not see why.",
        check=("`kubectl describe resourcequota -n NAMESPACE`",
               "Does it use them? `namespace:engine_active:avg{namespace=\"NAMESPACE\"}`"),
        remedy=("Busy: talk about a higher quota.", _MORE_GPUS),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUCapacityForecast",
        severity="info",
        component="gpu",
        action="capacity",
        expr="predict_linear(cluster:gpu_allocation:ratio[14d:1h], 21 * 86400) > {threshold}\n"
        "  and count_over_time(cluster:gpu_allocation:ratio[14d:1h]) > 0.8 * 14 * 24",
        hold_for="6h",
        threshold=0.9,
        unit="share of the GPUs that pods will hold in three weeks",
        summary="GPUs may run out within three weeks",
        description="By the trend of two weeks, {{ $value | humanizePercentage }} will be held.",
        meaning="A straight line through the last two weeks of allocation ends above the "
        "threshold. It knows neither weekends nor projects: a hint to look, not a forecast.",
        reason="GPUs take longer to buy than to use up.",
        check=("A forecast, with a backtest, and what fits now: `gpuboot capacity INVENTORY`",
               "The curve: `cluster:gpu_allocation:ratio` over 14 days",
               "Who grew: `namespace:gpu_requested:sum`"),
        remedy=("Compare with your procurement's lead time.", _MORE_GPUS,
                "Retention below 14 days (`monitoring.retention`) leaves this alert without the "
                "history it needs; it then never fires."),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
]  # fmt: skip
