"""Alerts on how GPUs are used: held but idle, asked for but not there."""

from __future__ import annotations

import re

from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.alert import ON_GPU, Alert
from gpuboot.monitoring.rules.promql import (
    DEVICE,
    ENGINE,
    GAP,
    GPU,
    QUOTA_RESOURCES,
    RESOURCES,
    profiled,
    quoted,
)
from gpuboot.monitoring.rules.requirements import Requirement


def alerts(settings: Settings) -> list[Alert]:
    """The alerts on use; full memory only in the namespaces that the settings name."""
    return [*_IDLE, _WITHOUT_A_POD, _memory(settings.alerts.gpu_memory_near_full), *_DEMAND]


_PER_POD = profiled(ENGINE, "avg_over_time", "30m", 'pod!=""')
_IDLE = [
    Alert(
        name="GPUAllocatedIdle",
        severity="warning",
        expr="max by (node, UUID, gpu, GPU_I_ID, namespace, pod) (gpu:engine_active:max1h)"
        " < {threshold}",
        threshold=0.01,
        summary="{{ $labels.namespace }}/{{ $labels.pod }} holds a GPU and does not use it",
        description="Nothing ran on {{ $labels.UUID }} of {{ $labels.node }} for an hour.",
        requires=Requirement.POD_LABELS,
    ),
    Alert(
        name="GPUStraggler",
        severity="info",
        expr=f"avg by (namespace, pod) ({_PER_POD})\n"
        f"  - min by (namespace, pod) ({_PER_POD}) > {{threshold}}",
        hold_for="15m",
        threshold=0.3,
        summary="One GPU of {{ $labels.namespace }}/{{ $labels.pod }} lags behind",
        description="{{ $value | humanizePercentage }} less busy than the pod's GPUs on average.",
        requires=Requirement.POD_LABELS,
    ),
]


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
    # with MIG the whole GPU may have a series beside those of its instances
    expr=f"""({_unheld('GPU_I_ID=""', "node, UUID")}\n"""
    f"""  or {_unheld('GPU_I_ID!=""', DEVICE)})\n"""
    f"  and on (node) ({_ALL_NAMED})",
    hold_for="30m",
    threshold=0.05,
    summary=f"{ON_GPU} computes for no pod that was given it",
    description="{{ $value | humanizePercentage }} busy, while no pod holds {{ $labels.UUID }}.",
    requires=Requirement.POD_LABELS | Requirement.KUBE_STATE_METRICS,
)


def _memory(namespaces: tuple[str, ...]) -> Alert:
    pattern = quoted("|".join(map(re.escape, namespaces)))
    return Alert(
        name="GPUMemoryNearFull",
        severity="info",
        expr="max by (node, UUID, gpu, GPU_I_ID, namespace, pod) "
        f"(gpu:memory_used:ratio{{namespace=~{pattern}}}) > {{threshold}}",
        hold_for="15m",
        threshold=0.97,
        summary="GPU memory of {{ $labels.namespace }}/{{ $labels.pod }} is nearly full",
        description="{{ $value | humanizePercentage }} of {{ $labels.UUID }}.",
        requires=Requirement.POD_LABELS,
        enabled=bool(namespaces),
    )


_REQUESTED = (
    '{__name__=~"kube_pod_container_resource_requests|kube_pod_init_container_resource_requests", '
    f"{RESOURCES}}}"
)
_DEMAND = [
    Alert(
        name="GPUPodPending",
        severity="warning",
        action="capacity",
        expr="max by (namespace, pod) (kube_pod_status_unschedulable == 1)\n"
        f"  and on (namespace, pod) sum by (namespace, pod) ({_REQUESTED}) > 0",
        hold_for="15m",
        summary="{{ $labels.namespace }}/{{ $labels.pod }} waits for a GPU",
        description="The scheduler has found no node for it for a quarter of an hour.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPUQuotaFull",
        severity="info",
        action="capacity",
        expr="max by (namespace, resourcequota, resource) "
        f'(kube_resourcequota{{{QUOTA_RESOURCES}, type="used"}})\n'
        "  / max by (namespace, resourcequota, resource) "
        f'(kube_resourcequota{{{QUOTA_RESOURCES}, type="hard"}}) >= {{threshold}}',
        hold_for="30m",
        threshold=1,
        summary="The GPU quota of {{ $labels.namespace }} is used up",
        description="Quota {{ $labels.resourcequota }}, {{ $labels.resource }}.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPUCapacityForecast",
        severity="info",
        action="capacity",
        expr="predict_linear(cluster:gpu_allocation:ratio[14d:1h], 21 * 86400) > {threshold}\n"
        "  and count_over_time(cluster:gpu_allocation:ratio[14d:1h]) > 0.8 * 14 * 24",
        hold_for="6h",
        threshold=0.9,
        summary="GPUs may run out within three weeks",
        description="By the trend of two weeks, {{ $value | humanizePercentage }} will be held.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
]
