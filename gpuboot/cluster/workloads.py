"""What makes pods, as everything in gpuboot looks at it, out of the API server's JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuboot.cluster.manifests import DIGEST
from gpuboot.cluster.objects import Condition, Json, annotations_of, parse_conditions


@dataclass(frozen=True)
class Workload:
    """A DaemonSet, Deployment, StatefulSet or ReplicaSet: pods that it wants and that are ready.

    + observed: its controller has seen its present specification
    + digest: of the manifest that gpuboot applied; "" for others' objects
    + old: how many of the ready pods may be of an earlier template
    + missing: how many of its pods are not even made
    + refusal: why not, where its controller says so
    + selector: labels of the nodes that its pods may be on; tolerates: as the API has them
    + env: names of its containers' variables
    + rolling: whether its pods are being replaced by those of its newest template
    """

    kind: str
    namespace: str
    name: str
    desired: int
    ready: int
    observed: bool = True
    digest: str = ""
    old: int = 0
    missing: int = 0
    refusal: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerates: tuple[Json, ...] = ()
    env: frozenset[str] = frozenset()
    rolling: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def current(self) -> int:
        """How many of its pods are up to date and ready."""
        return self.ready - self.old


def find_workload(workloads: Iterable[Workload], namespace: str, name: str) -> Workload | None:
    """The workload of this name; None without one."""
    return next(
        (item for item in workloads if (item.namespace, item.name) == (namespace, name)), None
    )


def parse_workload(kind: str, item: Json) -> Workload:
    """A workload of the API."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    template = spec.get("template", {}).get("spec", {})
    failure = parse_conditions(item).get("ReplicaFailure", Condition())
    observed = status.get("observedGeneration", 0) >= meta.get("generation", 0)
    if kind == "DaemonSet":
        desired = total = status.get("desiredNumberScheduled") or 0
        missing = desired - status.get("currentNumberScheduled", desired)
        updated, ready = status.get("updatedNumberScheduled") or 0, status.get("numberReady") or 0
        old = max(ready - updated, 0)
    else:
        desired, total = spec.get("replicas", 1), status.get("replicas") or 0
        updated, ready = status.get("updatedReplicas") or 0, status.get("readyReplicas") or 0
        missing = desired - updated
        # while old pods run beside new ones, as many of the ready ones may be old
        old = ready - min(updated, max(ready - max(total - updated, 0), 0))
    return Workload(
        kind=kind,
        namespace=meta["namespace"],
        name=meta["name"],
        desired=desired,
        ready=ready,
        observed=observed,
        digest=annotations_of(item).get(DIGEST, ""),
        old=old,
        missing=max(missing, 0),
        refusal=failure.message if failure.status == "True" else "",
        selector=template.get("nodeSelector") or {},
        tolerates=tuple(template.get("tolerations") or ()),
        env=frozenset(
            entry["name"]
            for container in template.get("containers") or ()
            for entry in container.get("env") or ()
        ),
        # a ReplicaSet never replaces a pod
        rolling=kind != "ReplicaSet" and (not observed or updated < total),
    )
