"""Recording rules on how GPUs are used, by nodes, namespaces and pods: activity, watts, number."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.monitoring.rules.promql import (
    DEVICE,
    RESOURCES,
    engine,
    non_blank,
    profiled,
    shown_by_exporter,
)
from gpuboot.monitoring.rules.record import Record
from gpuboot.monitoring.rules.requirements import Requirement

_ENGINE = f"max by ({DEVICE}) (gpu:engine_active:avg5m)"
_EACH_GPU = f"avg by (node, UUID) ({_ENGINE})"
_HAS_POD = 'pod!=""'


def activity() -> list[Record]:
    """How busy nodes, namespaces and pods are. A GPU counts once, however it is cut or shared."""
    return [
        Record(
            "node:engine_active:avg",
            f"avg by (node) ({_EACH_GPU})",
            "Mean activity of the node's GPUs, 0 to 1; MIG instances of a GPU count alike.",
        ),
        Record(
            "cluster:engine_active:avg", f"avg({_EACH_GPU})", "Mean activity of all GPUs, 0 to 1."
        ),
        *(
            Record(name, expr, meaning, requires=Requirement.POD_LABELS)
            for name, expr, meaning in _of_holders()
        ),
    ]


def _of_holders() -> Iterator[tuple[str, str, str]]:
    """Name, expression and meaning of each record on namespaces and pods."""
    engine_activity = f'max by (namespace, {DEVICE}) (gpu:engine_active:avg5m{{namespace!=""}})'
    yield (
        "namespace:engine_active:avg",
        f"avg by (namespace) ({engine_activity})",
        "Mean activity of the GPUs and MIG instances that the namespace's pods hold.",
    )
    yield (
        "namespace_pod:engine_active:avg2m",
        _of_pods(engine("avg_over_time", "2m", _HAS_POD)),
        "Mean engine activity of the GPUs a pod holds, over 2 minutes, 0 to 1.",
    )
    sm_active = profiled("DCGM_FI_PROF_SM_ACTIVE", "avg_over_time", "2m", _HAS_POD)
    yield (
        "namespace_pod:sm_active:avg2m",
        f"clamp_max({_of_pods(sm_active)}, 1)",
        "Mean SM activity of the GPUs a pod holds, over 2 minutes, 0 to 1.",
    )
    per_namespace = f"count by (namespace) (max by (namespace, pod, {DEVICE})"
    idle = "gpu:engine_active:max1h < 0.01"
    yield (
        "namespace:gpu_idle_held:count",
        f"{per_namespace} ({idle}))\nor 0 * {per_namespace} (gpu:engine_active:max1h))",
        "GPUs and MIG instances that pods held but kept below 1 % busy for an hour.",
    )


def _of_pods(series: str) -> str:
    """The mean of a pod's GPUs. Each counts once, in however many shares and containers it is."""
    return f"avg by (namespace, pod) (max by (namespace, pod, {DEVICE}) ({series}))"


# a container has a series for each share that it holds, with the share's number in `vgpu`
_EACH_SHARE = f"namespace, pod, container, vgpu, {DEVICE}"
_SHARES = "gpu:shares_held:count"


def shares() -> Record:
    """How many shares of a GPU each pod holds."""
    each_share = shown_by_exporter(_EACH_SHARE, _HAS_POD)
    return Record(
        _SHARES,
        f"count by (namespace, pod, {DEVICE}) ({each_share})",
        "Shares of a GPU or MIG instance that a pod holds; 1 of what is not shared.",
        requires=Requirement.POD_LABELS,
    )


def part_of_device() -> str:
    """PromQL of the part of each GPU or MIG instance that is a pod's, 0 to 1, by held shares.

    Labels: namespace, pod and `DEVICE`. Of times in which shares were not recorded, pods count
    alike.
    """
    engine_by_pod = f"max by (namespace, pod, {DEVICE}) (gpu:engine_active:avg5m{{{_HAS_POD}}})"
    share = f"({_SHARES} or on (namespace, pod, {DEVICE}) (0 * {engine_by_pod} + 1))"
    return f"({share} / on ({DEVICE}) group_left () sum by ({DEVICE}) ({share}))"


def held_power(by: str) -> str:
    """PromQL of the watts of GPUs that pods hold. What is shared is divided by shares.

    + by: labels, e.g. `namespace, pod`
    """
    power = non_blank("DCGM_FI_DEV_POWER_USAGE", 'namespace!=""')
    all_shares = f"max by ({_EACH_SHARE}) ({non_blank('DCGM_FI_DEV_POWER_USAGE')})"
    pod_shares = f"max by ({_EACH_SHARE}) ({power})"
    # an exporter beside ours that names no pods adds no share to what pods hold
    return (
        f"sum by ({by}) ({pod_shares}\n  / on (node, UUID) group_left ()"
        f" count by (node, UUID) ({pod_shares}\n    or on ({DEVICE}) {all_shares}))"
    )


def power() -> list[Record]:
    """Records of power in watts; a shared GPU's is divided by the parts that pods hold of it."""
    watts = non_blank("DCGM_FI_DEV_POWER_USAGE")
    return [
        Record(
            "node:gpu_power:sum",
            f"sum by (node) (max by (node, UUID) ({watts}))",
            "Power draw of the node's GPUs, in W.",
        ),
        Record("cluster:gpu_power:sum", "sum(node:gpu_power:sum)", "Of all GPUs, in W."),
        Record(
            "namespace:gpu_power:sum",
            held_power("namespace"),
            "Power draw of the GPUs that the namespace's pods hold, in W.",
            requires=Requirement.POD_LABELS,
        ),
    ]


_REQUEST = "namespace, pod, node, resource"
_OF_CONTAINERS = (
    f"sum by ({_REQUEST}) (max by ({_REQUEST}, container)"
    f' (kube_pod_container_resource_requests{{{RESOURCES}, node!=""}}))'
)
# those that run before the others, or beside them as sidecars
_OF_INIT = (
    f'max by ({_REQUEST}) (kube_pod_init_container_resource_requests{{{RESOURCES}, node!=""}})'
)
_ALIVE = 'kube_pod_status_phase{phase=~"Pending|Running"} == 1'


def _of_nodes(quantity: str) -> str:
    return f"sum by (node) (max by (node, resource) (kube_node_status_{quantity}{{{RESOURCES}}}))"


# name, expression, meaning; each sees those before it
_ALLOCATION = (
    (
        "node:gpu_capacity:sum",
        _of_nodes("capacity"),
        "GPUs and MIG instances of the node, by the kubelet.",
    ),
    (
        "node:gpu_allocatable:sum",
        _of_nodes("allocatable"),
        "Of these, what is healthy and may be given to pods.",
    ),
    (
        "namespace_pod:gpu_requested:sum",
        f"({_OF_INIT} > {_OF_CONTAINERS}\n  or {_OF_CONTAINERS}\n  or {_OF_INIT})\n"
        f"  * on (namespace, pod) group_left () max by (namespace, pod) ({_ALIVE})",
        "GPUs that a pod on a node holds: those of its containers, or of an init container that "
        "asks for more. Completed pods hold none. GPU hours of a day: "
        "sum_over_time(…[1d:1m]) / 60.",
    ),
    (
        "node:gpu_requested:sum",
        "sum by (node) (namespace_pod:gpu_requested:sum) or 0 * node:gpu_capacity:sum",
        "GPUs and MIG instances that pods of the node hold.",
    ),
    (
        "namespace:gpu_requested:sum",
        "sum by (namespace) (namespace_pod:gpu_requested:sum)",
        "GPUs and MIG instances that the namespace's pods hold.",
    ),
    *(
        (
            f"cluster:gpu_{quantity}:sum",
            f"sum(node:gpu_{quantity}:sum)",
            f"Of all nodes: {quantity}.",
        )
        for quantity in ("capacity", "allocatable", "requested")
    ),
    (
        "cluster:gpu_allocation:ratio",
        "cluster:gpu_requested:sum / (cluster:gpu_allocatable:sum > 0)",
        "GPUs that pods hold as a share of those that may be given to pods.",
    ),
)


def allocation() -> list[Record]:
    """What the scheduler has, offers and has given away, from kube-state-metrics."""
    return [
        Record(name, expr, meaning, requires=Requirement.KUBE_STATE_METRICS)
        for name, expr, meaning in _ALLOCATION
    ]
