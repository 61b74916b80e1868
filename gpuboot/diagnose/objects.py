"""The cluster's objects as causes look at them, out of the API server's JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpuboot.cluster.terminating import foreign_finalizers, true_conditions
from gpuboot.diagnose.limit_ranges import default_memory
from gpuboot.telemetry.collectors import COLLECTORS_ANNOTATION

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Termination:
    """How a container ended. + at: seconds since 1970; 0.0 where it is not known"""

    reason: str = ""
    code: int = 0
    message: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class Container:
    """A container of a pod.

    + state: waiting, running or terminated; "" before the kubelet has told
    + reason, message: why it waits, or how it ended
    + termination: how it ended last time
    + started: when it was started that runs, seconds since 1970; 0.0 where none runs
    """

    name: str
    ready: bool = False
    restarts: int = 0
    state: str = ""
    reason: str = ""
    message: str = ""
    termination: Termination | None = None
    started: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod.

    + owner: kind and name of its controller; "" for none
    + waits: why the scheduler finds no node; "" when it has one
    + claims: names of the volume claims that it mounts
    + stamp: digest of the collectors that an exporter started with
    + default_memory: as of `limit_ranges.default_memory`
    """

    namespace: str
    name: str
    node: str = ""
    phase: str = ""
    owner: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = False
    going: bool = False
    reason: str = ""
    waits: str = ""
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    runtime_class: str = ""
    gpus: bool = False
    stamp: str = ""
    default_memory: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[Container, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def started(self) -> float:
        """When its youngest container was started that runs; 0.0 where none runs."""
        return max((container.started for container in self.containers), default=0.0)


@dataclass(frozen=True, kw_only=True)
class KubeNode:
    """A node. + taints: `key=value:effect`; conditions: type -> (status, message)"""

    name: str
    ready: bool
    message: str = ""
    unschedulable: bool = False
    taints: tuple[str, ...] = ()
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """Something that was told of an object. + at: seconds since 1970"""

    kind: str
    namespace: str
    name: str
    reason: str
    message: str
    at: float

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Claim:
    """A claim of storage."""

    namespace: str
    name: str
    phase: str
    storage_class: str


@dataclass(frozen=True)
class Going:
    """A namespace that is being deleted.

    + since: seconds since 1970; + waits: what it waits for, in the words of its conditions
    + finalizers: its own, which somebody has to take away
    """

    name: str
    since: float
    waits: tuple[str, ...] = ()
    finalizers: tuple[str, ...] = ()


def seconds(text: Any) -> float:
    """A time of the API in seconds since 1970; 0.0 for none."""
    return datetime.fromisoformat(str(text)).timestamp() if text else 0.0


def pod(item: Json) -> Pod:
    """A pod of the API."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    conditions = {entry["type"]: entry for entry in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled", {})
    running = {
        entry["name"]: entry
        for key in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(key) or ()
    }
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        node=spec.get("nodeName", ""),
        phase=status.get("phase", ""),
        owner=_owner(meta),
        labels=meta.get("labels") or {},
        ready=conditions.get("Ready", {}).get("status") == "True",
        going="deletionTimestamp" in meta,
        reason=status.get("reason", ""),
        waits=scheduled.get("message", "") if scheduled.get("status") == "False" else "",
        gates=tuple(entry["name"] for entry in spec.get("schedulingGates") or ()),
        claims=tuple(_claims(spec)),
        runtime_class=spec.get("runtimeClassName", ""),
        gpus=any(_asks_gpu(entry) for entry in containers),
        stamp=(meta.get("annotations") or {}).get(COLLECTORS_ANNOTATION, ""),
        default_memory=default_memory(item),
        containers=tuple(
            _container(entry["name"], running.get(entry["name"], {})) for entry in containers
        ),
    )


def _owner(meta: Json) -> str:
    owners = [owner for owner in meta.get("ownerReferences") or () if owner.get("controller")]
    return f"{owners[0]['kind']} {owners[0]['name']}" if owners else ""


def _claims(spec: Json) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield claim["claimName"]


def _asks_gpu(container: Json) -> bool:
    limits = (container.get("resources") or {}).get("limits") or {}
    return any(name.startswith("nvidia.com/") for name in limits)


def _container(name: str, status: Json) -> Container:
    state = status.get("state") or {}
    word = next(iter(state), "")
    now = state.get(word) or {}
    last = (status.get("lastState") or {}).get("terminated")
    return Container(
        name,
        bool(status.get("ready")),
        status.get("restartCount", 0),
        word,
        now.get("reason") or "",
        now.get("message") or "",
        _termination(last) if last else (_termination(now) if word == "terminated" else None),
        seconds(now.get("startedAt")) if word == "running" else 0.0,
    )


def _termination(item: Json) -> Termination:
    return Termination(
        item.get("reason") or "",
        item.get("exitCode", 0),
        item.get("message") or "",
        seconds(item.get("finishedAt")),
    )


def node(item: Json) -> KubeNode:
    """A node of the API."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    conditions = {
        entry["type"]: (entry["status"], entry.get("message") or "")
        for entry in status.get("conditions") or ()
    }
    ready, message = conditions.get("Ready", ("Unknown", ""))
    return KubeNode(
        name=meta["name"],
        ready=ready == "True",
        message=message,
        unschedulable=bool(spec.get("unschedulable")),
        taints=tuple(
            f"{entry['key']}={entry.get('value', '')}:{entry['effect']}".replace("=:", ":")
            for entry in spec.get("taints") or ()
        ),
        conditions=conditions,
        labels=meta.get("labels") or {},
        allocatable=status.get("allocatable") or {},
        capacity=status.get("capacity") or {},
    )


def event(item: Json) -> Event:
    """An event of the API."""
    subject = item.get("involvedObject") or {}
    series = item.get("series") or {}
    at = series.get("lastObservedTime") or item.get("lastTimestamp") or item.get("eventTime")
    return Event(
        subject.get("kind", ""),
        subject.get("namespace", ""),
        subject.get("name", ""),
        item.get("reason") or "",
        item.get("message") or "",
        seconds(at or item["metadata"].get("creationTimestamp")),
    )


def going(item: Json) -> Going | None:
    """A namespace of the API that is being deleted; None for one that is not."""
    meta = item["metadata"]
    if not (since := meta.get("deletionTimestamp")):
        return None
    waits = [
        f"{condition['type']}: {condition.get('message', '')}"
        for condition in true_conditions(item)
    ]
    return Going(meta["name"], seconds(since), tuple(waits), foreign_finalizers(item))


def claim(item: Json) -> Claim:
    """A claim of storage of the API."""
    meta = item["metadata"]
    phase = (item.get("status") or {}).get("phase", "")
    return Claim(
        meta["namespace"], meta["name"], phase, item.get("spec", {}).get("storageClassName") or ""
    )
