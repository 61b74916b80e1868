"""The cluster's workloads as causes look at them, out of the API server's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.diagnose.objects import Json


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A DaemonSet, Deployment, StatefulSet or ReplicaSet: pods that it wants and that are ready.

    + env: names of its containers' variables; tolerates: its tolerations as the API has them
    + rolling: whether its pods are being replaced by those of its newest template
    """

    kind: str
    namespace: str
    name: str
    desired: int
    ready: int
    failure: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerates: tuple[Json, ...] = ()
    env: frozenset[str] = frozenset()
    rolling: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def workload(kind: str, item: Json) -> Workload:
    """A workload of the API."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    below = spec.get("template", {}).get("spec", {})
    daemon = kind == "DaemonSet"
    failures = [
        entry.get("message") or ""
        for entry in status.get("conditions") or ()
        if entry["type"] == "ReplicaFailure" and entry["status"] == "True"
    ]
    return Workload(
        kind=kind,
        namespace=meta["namespace"],
        name=meta["name"],
        desired=status.get("desiredNumberScheduled", 0) if daemon else spec.get("replicas", 1),
        ready=status.get("numberReady" if daemon else "readyReplicas") or 0,
        failure=next(iter(failures), ""),
        selector=below.get("nodeSelector") or {},
        tolerates=tuple(below.get("tolerations") or ()),
        env=frozenset(
            entry["name"]
            for container in below.get("containers") or ()
            for entry in container.get("env") or ()
        ),
        rolling=_rolling(kind, item),
    )


def _rolling(kind: str, item: Json) -> bool:
    """Whether a workload's newest template is not yet that of all its pods."""
    status = item.get("status", {})
    if kind == "ReplicaSet":  # it never replaces a pod
        return False
    if status.get("observedGeneration", 0) < item["metadata"].get("generation", 0):
        return True
    daemon = kind == "DaemonSet"
    updated = status.get("updatedNumberScheduled" if daemon else "updatedReplicas") or 0
    return updated < (status.get("desiredNumberScheduled" if daemon else "replicas") or 0)
