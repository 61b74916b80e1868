"""Why metrics will not come: what serves them does not exist, is refused, or finds no node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from gpuboot.cluster.api import Cluster
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.objects import parse_event
from gpuboot.cluster.pod_issues import issues_of
from gpuboot.cluster.pods import parse_pod
from gpuboot.cluster.stuck import UNCERTAIN_S, belongs, of_workload
from gpuboot.cluster.workloads import Workload, parse_workload
from gpuboot.verify.concurrently import concurrently

Source = Literal["exporter", "prometheus", "alertmanager", "grafana"]
EXPORTER_LABELS = (
    "app=nvidia-dcgm-exporter",  # the GPU Operator's
    "app.kubernetes.io/name=dcgm-exporter",  # the chart's own
)
# whose StatefulSets' names prometheus-operator begins so
_OF_OPERATOR: tuple[Source, ...] = ("prometheus", "alertmanager")
_APPS = "/apis/apps/v1"
_RERUN = "run deploys/site.py, which installs it again"
_OWNERS: Mapping[Source, str] = {
    "exporter": "DaemonSet of dcgm-exporter",
    "prometheus": "StatefulSet of Prometheus",
    "alertmanager": "StatefulSet of Alertmanager",
    "grafana": "Deployment of Grafana",
}


@dataclass(frozen=True)
class Blocked:
    """Why a source of metrics is not there, in the cluster's words, and what to do about it."""

    reason: str
    remedy: str


def read(cluster: Cluster, namespace: str, grafana: str) -> dict[Source, Blocked]:
    """The sources whose pods are not made, find no node, or are all elsewhere.

    + namespace: of the monitoring stack; "" where a site has none
    + grafana: name of its Deployment; "" where a site has none

    Raises `ClusterError`, KeyError.
    """
    sets, statefulsets, deployments, events = concurrently(_questions(cluster, namespace))
    owners: dict[Source, list[Workload]] = {"exporter": sets}
    if namespace:
        for source in _OF_OPERATOR:
            owners[source] = [item for item in statefulsets if item.name.startswith(f"{source}-")]
    if grafana:
        owners["grafana"] = [item for item in deployments if item.name == grafana]
    spaces = {item.namespace for items in owners.values() for item in items if _is_incomplete(item)}
    pods = concurrently(
        partial(cluster.json, f"/api/v1/namespaces/{space}/pods") for space in sorted(spaces)
    )
    issues = issues_of(
        [parse_pod(pod) for answer in pods for pod in answer["items"]], map(parse_event, events)
    )
    now = cluster.now().timestamp() if issues else 0.0
    return {
        source: blocked
        for source, items in owners.items()
        if (blocked := _blocked(source, items, _settled(issues, now)))
    }


def _questions(cluster: Cluster, namespace: str) -> Iterable[Callable[[], list[Any]]]:
    def workloads(kind: str, path: str, query: Mapping[str, str]) -> list[Workload]:
        return [parse_workload(kind, item) for item in cluster.json(path, query)["items"]]

    def exporters() -> list[Workload]:
        answers = [
            workloads("DaemonSet", f"{_APPS}/daemonsets", {"labelSelector": labels})
            for labels in EXPORTER_LABELS
        ]
        return [item for answer in answers for item in answer]

    def of_stack(kind: str, plural: str) -> list[Workload]:
        path = f"{_APPS}/namespaces/{namespace}/{plural}"
        return workloads(kind, path, {}) if namespace else []

    query = {"fieldSelector": "reason=FailedCreate"}
    return (
        exporters,
        partial(of_stack, "StatefulSet", "statefulsets"),
        partial(of_stack, "Deployment", "deployments"),
        lambda: list(cluster.json("/api/v1/events", query)["items"]),
    )


def _is_incomplete(item: Workload) -> bool:
    return item.current < item.desired


def _settled(issues: Iterable[PodIssue], now: float) -> tuple[PodIssue, ...]:
    """The issues that do not pass by themselves within a wait."""
    return tuple(
        item
        for item in issues
        if item.kind == "refused"
        or (item.kind == "unscheduled" and now - item.created > UNCERTAIN_S)
    )


def _blocked(source: Source, items: list[Workload], issues: tuple[PodIssue, ...]) -> Blocked | None:
    if not items:
        return Blocked(f"there is no {_OWNERS[source]}", _RERUN)
    for item in items:
        item_issues = tuple(issue for issue in issues if belongs(issue, item))
        if _is_incomplete(item) and (item_issues or item.refusal):
            for reason in of_workload(item, ClusterState(pod_issues=item_issues)):
                return Blocked(str(reason), f"{reason.remedy}; then verify again")
    if source == "exporter" and all(item.observed and not _is_incomplete(item) for item in items):
        return _placed_elsewhere(items[0])
    return None


def _placed_elsewhere(daemonset: Workload) -> Blocked:
    """Why a node has no pod of a DaemonSet that has all the pods that it wants."""
    return Blocked(
        f"DaemonSet {daemonset.namespace}/{daemonset.name} wants {daemonset.desired} pods and has "
        "them: a label that this node lacks or a taint of the node keeps it off",
        f"compare nodeSelector and tolerations (`kubectl -n {daemonset.namespace} get daemonset "
        f"{daemonset.name} -o yaml`) with labels and taints (`kubectl describe node`), give the "
        "node the label or remove the taint, then verify again",
    )
