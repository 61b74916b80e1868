"""Demand and supply of each kind of GPU, out of series.

Series by name: `allocated` and `pending`, `installed`, `unavailable` and `gang`. Their
labels `model` and `resource` name the pool.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuboot.monitoring.rules.promql import RESOURCES
from gpuboot.usage.capacity.backtest import quantile
from gpuboot.usage.capacity.hourly import HOUR, Hourly, hourly
from gpuboot.usage.series import History, SeriesError, StepSeries, Window

ALL = "all models"
NAMES = ("allocated", "pending", "installed", "unavailable", "gang")
UNNAMED = (
    "pods that wait name no model, so demand here is what is allocated; "
    f"those that wait count in the pool of {ALL}"
)
_PRODUCT = "label_nvidia_com_gpu_product"
# owners whose pods need not run at once
_NO_GANGS = "ReplicaSet|StatefulSet|DaemonSet|Node|<none>"


@dataclass(frozen=True, order=True)
class Pool:
    """What a job asks for. + model: as feature discovery names it; resource: nvidia.com/…"""

    model: str
    resource: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.model, self.resource)))


@dataclass(frozen=True)
class PoolData:
    """What series say of a pool.

    + installed: the newest value; None without such a series
    + unavailable: P95 by the hour; gang: the largest job of all hours; both 0 where nobody says it
    """

    demand: Hourly
    installed: int | None = None
    unavailable: float = 0.0
    gang: int = 0
    notes: tuple[str, ...] = ()


_Values = dict[int, float]
_ByPool = dict[Pool, _Values]


def pools(history: History) -> dict[Pool, PoolData]:
    """Each pool with demand. Raises `SeriesError` where there is no series of demand at all."""
    by_name = {name: _by_pool(history.of(name)) for name in NAMES}
    demand, unnamed = _demand(by_name)
    if not demand:
        raise SeriesError("no series of demand")
    return {
        pool: PoolData(
            hourly(values.items()),
            _newest(by_name["installed"].get(pool, {})),
            _p95(by_name["unavailable"].get(pool, {})),
            round(max(by_name["gang"].get(pool, {}).values(), default=0)),
            (UNNAMED,) if pool in unnamed else (),
        )
        for pool, values in sorted(demand.items())
        if any(values.values()) or _newest(by_name["installed"].get(pool, {}))
    }


def _by_pool(series: Iterable[StepSeries]) -> _ByPool:
    """Values by pool; series of the same pool, such as those of several nodes, are added."""
    values: dict[Pool, _Values] = defaultdict(dict)
    for step_series in series:
        of_pool = values[_pool(step_series.labels)]
        for moment, value in step_series.values.items():
            of_pool[moment] = of_pool.get(moment, 0.0) + value
    return dict(values)


def _pool(labels: Mapping[str, str]) -> Pool:
    model = labels.get("model") or labels.get(_PRODUCT, "")
    return Pool(model, kubernetes_name(labels.get("resource", "")))


def kubernetes_name(resource: str) -> str:
    """A resource as Kubernetes writes it: kube-state-metrics has `nvidia_com_mig_1g_10gb`."""
    name = re.sub(r"^nvidia_com_", "nvidia.com/", resource)
    if name.startswith("nvidia.com/mig_"):
        return "nvidia.com/mig-" + name.removeprefix("nvidia.com/mig_").replace("_", ".")
    return name.replace("gpu_shared", "gpu.shared")


def _demand(by_name: dict[str, _ByPool]) -> tuple[_ByPool, set[Pool]]:
    """Demand by pool, and the pools that lack what waits: then one of all models is added."""
    demand: _ByPool = {}
    unnamed: set[Pool] = set()
    for resource in {pool.resource for pool in by_name["allocated"]}:
        resource_pools = [pool for pool in by_name["allocated"] if pool.resource == resource]
        waiting = by_name["pending"].get(Pool("", resource))
        for pool in resource_pools:
            of_pool = by_name["pending"].get(pool, waiting if len(resource_pools) == 1 else None)
            demand[pool] = _sum(by_name["allocated"][pool], of_pool)
        if waiting is not None and len(resource_pools) > 1:
            unnamed |= set(resource_pools)
            together = Pool(ALL, resource)
            demand[together] = _sum(_total(by_name["allocated"], resource_pools), waiting)
            for name in ("installed", "unavailable"):
                by_name[name][together] = _total(by_name[name], resource_pools)
            by_name["gang"][together] = _largest(by_name["gang"], resource_pools)
    return demand, unnamed


def _sum(values: _Values, added: _Values | None) -> _Values:
    """The sum of hours of which both are known; without `added`, all hours of `values`."""
    if added is None:
        return dict(values)
    return {moment: value + added[moment] for moment, value in values.items() if moment in added}


def _total(of_pools: _ByPool, pools: Iterable[Pool]) -> _Values:
    """The sum of hours of which all are known. + pools: those without values are left out"""
    known_values = [of_pools[pool] for pool in pools if pool in of_pools]
    moments = set.intersection(*map(set, known_values)) if known_values else set()
    return {moment: sum(values[moment] for values in known_values) for moment in moments}


def _largest(of_pools: _ByPool, pools: Iterable[Pool]) -> _Values:
    largest: _Values = {}
    for pool in pools:
        for moment, value in of_pools.get(pool, {}).items():
            largest[moment] = max(value, largest.get(moment, 0.0))
    return largest


def _newest(values: _Values) -> int | None:
    return round(values[max(values)]) if values else None


def _p95(values: _Values) -> float:
    return quantile(list(values.values()), 0.95) if values else 0.0


# Of each (node, resource) that the kubelet has told of
_CAPACITY = f"max by (node, resource) (kube_node_status_capacity{{{RESOURCES}}})"
_ALLOCATABLE = f"max by (node, resource) (kube_node_status_allocatable{{{RESOURCES}}})"
_REQUESTED = "sum by (node, resource) (namespace_pod:gpu_requested:sum)"
_USABLE = (
    '(max by (node) (kube_node_status_condition{condition="Ready", status="true"})'
    " * on (node) (1 - max by (node) (kube_node_spec_unschedulable)))"
)
_MODEL = (
    f'(topk by (node) (1, max by (node, {_PRODUCT}) (kube_node_labels{{{_PRODUCT}!=""}}))\n'
    f'  or on (node) label_replace(0 * max by (node) ({_CAPACITY}) + 1, "{_PRODUCT}",'
    ' "unknown model", "node", ".*"))'
)
_WAITING = (
    "sum by (resource) (max by (namespace, pod, container, resource)"
    f' (kube_pod_container_resource_requests{{{RESOURCES}, node=""}})'
    " * on (namespace, pod) group_left ()"
    ' max by (namespace, pod) (kube_pod_status_phase{phase="Pending"} == 1))'
)
_OWNERS = (
    "max by (namespace, pod, created_by_kind, created_by_name)"
    f' (kube_pod_info{{created_by_kind!~"{_NO_GANGS}"}})'
)


def _by_model(expression: str) -> str:
    """+ expression: with the labels node and resource"""
    return (
        f"sum by ({_PRODUCT}, resource) (({expression})\n"
        f"  * on (node) group_left ({_PRODUCT}) {_MODEL})"
    )


def _over_the_hour(expression: str) -> str:
    """The expression's mean over the minutes for which kube-state-metrics gave samples."""
    return f"avg_over_time(({expression})[1h:5m])"


def queries() -> dict[str, str]:
    """PromQL by name: what `pools` reads, evaluated at the end of each hour."""
    jobs = (
        f"sum by (node, namespace, resource, created_by_kind, created_by_name)"
        f" (namespace_pod:gpu_requested:sum * on (namespace, pod)"
        f" group_left (created_by_kind, created_by_name) {_OWNERS})"
    )
    with_model = f"* on (node) group_left ({_PRODUCT}) {_MODEL}"
    job = f"{_PRODUCT}, namespace, resource, created_by_kind, created_by_name"
    return {
        "allocated": _by_model(_over_the_hour(f"{_REQUESTED} or 0 * {_CAPACITY}")),
        "pending": _over_the_hour(f"{_WAITING} or 0 * sum by (resource) ({_CAPACITY})"),
        "installed": _by_model(_CAPACITY),
        "unavailable": _by_model(
            f"{_CAPACITY}\n  - on (node, resource)"
            f" ({_ALLOCATABLE} * on (node) group_left () {_USABLE})"
        ),
        "gang": f"max by ({_PRODUCT}, resource) (sum by ({job}) ({jobs} {with_model})\n"
        f"  or namespace_pod:gpu_requested:sum {with_model})",
    }


def window(now: float, weeks: int) -> Window:
    """The last whole hours. + now: unix seconds"""
    end = int(now // HOUR) * HOUR
    return Window(end - weeks * 168 * HOUR, end, HOUR)
