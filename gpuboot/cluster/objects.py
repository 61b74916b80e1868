"""The cluster's objects as everything in gpuboot looks at them, out of the API server's JSON.

Pods stand in `gpuboot.cluster.pods`, what makes them in `gpuboot.cluster.workloads`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from gpuboot.cluster.terminating import foreign_finalizers, true_conditions
from gpuboot.hosts.mig_devices import MIG_PREFIX

Json = Mapping[str, Any]

GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared")


class JsonReader(Protocol):
    """What can read JSON below a path: `gpuboot.cluster.api.Cluster`."""

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any: ...


class Condition(NamedTuple):
    """A condition of an object. + since: when it last changed, in seconds since 1970"""

    status: str = ""
    message: str = ""
    reason: str = ""
    since: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node.

    + message: what its condition Ready says
    + taints: `key=value:effect`
    + address: its internal addresses, one after the other; pod_cidrs: the networks of its pods
    + versions: of kubelet, runtime, kernel and system, as its kubelet reports them
    + boot_id: of the boot that its kubelet reports
    + reported: when its kubelet last reported, in seconds since 1970; 0.0 for never, or not read
    + kubelet_error: why its kubelet is taken for stopped although the node is Ready; "": it is not
    """

    name: str
    ready: bool
    message: str = ""
    cordoned: bool = False
    taints: tuple[str, ...] = ()
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    pod_cidrs: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    boot_id: str = ""
    reported: float = 0.0
    kubelet_error: str = ""

    @property
    def kubelet(self) -> str:
        """The version of its kubelet, without its v."""
        return self.versions.get("kubelet", "").removeprefix("v")

    @property
    def replicas(self) -> int:
        """How many pods may hold the same of its GPUs, by its label, which people may set."""
        text = self.labels.get("nvidia.com/gpu.replicas", "")
        return int(text) if text.isdecimal() else 1

    @property
    def gpus(self) -> int:
        """How many GPUs it offers, whole or shared."""
        return sum(count(self.allocatable.get(name, 0)) for name in GPU_RESOURCES)

    @property
    def mig(self) -> dict[str, int]:
        """MIG devices that it offers, by resource."""
        return mig_devices(self.allocatable)

    def has_taint(self, key: str) -> bool:
        return any(taint_key(taint) == key for taint in self.taints)

    def untolerated_taint(self, tolerated: Iterable[str]) -> str:
        """A taint that keeps pods off it; "" without one.

        + tolerated: taint keys that the pods tolerate. `unschedulable` is left to the caller, who
          knows that the node is cordoned
        """
        tolerated_keys = {*tolerated, "node.kubernetes.io/unschedulable"}
        return next(
            (
                taint
                for taint in self.taints
                if taint_key(taint) not in tolerated_keys
                and taint.endswith((":NoSchedule", ":NoExecute"))
            ),
            "",
        )


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
    """A claim of storage. + size: what it has, or asks for; volume: what it is bound to"""

    namespace: str
    name: str
    size: str = ""
    storage_class: str = ""
    volume: str = ""
    phase: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


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


def labels_of(item: Json) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def annotations_of(item: Json) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def taint_key(taint: str) -> str:
    return re.split("[=:]", taint)[0]


def mig_devices(resources: Mapping[str, str | int]) -> dict[str, int]:
    """The MIG devices among some resources: resource -> how many."""
    return {name: count(n) for name, n in resources.items() if name.startswith(MIG_PREFIX)}


def parse_conditions(item: Json) -> dict[str, Condition]:
    """The conditions of an object of the API, by type."""
    return {
        entry["type"]: Condition(
            entry.get("status", ""),
            entry.get("message") or "",
            entry.get("reason") or "",
            seconds(entry.get("lastTransitionTime")),
        )
        for entry in (item.get("status") or {}).get("conditions") or ()
    }


def parse_node(item: Json) -> Node:
    """A node of the API."""
    spec, status = item.get("spec", {}), item.get("status", {})
    conditions, info = parse_conditions(item), status.get("nodeInfo", {})
    ready = conditions.get("Ready", Condition())
    return Node(
        name=item["metadata"]["name"],
        ready=ready.status == "True",
        message=ready.message,
        cordoned=bool(spec.get("unschedulable")),
        taints=tuple(
            f"{entry['key']}={entry.get('value', '')}:{entry['effect']}".replace("=:", ":")
            for entry in spec.get("taints") or ()
        ),
        conditions=conditions,
        labels=labels_of(item),
        annotations=annotations_of(item),
        allocatable=status.get("allocatable") or {},
        capacity=status.get("capacity") or {},
        address=" ".join(
            entry["address"]
            for entry in status.get("addresses") or ()
            if entry["type"] == "InternalIP"
        ),
        pod_cidrs=tuple(spec.get("podCIDRs") or ()),
        versions={
            "kubelet": info.get("kubeletVersion", ""),
            "runtime": info.get("containerRuntimeVersion", ""),
            "kernel": info.get("kernelVersion", ""),
            "system": info.get("osImage", ""),
        },
        boot_id=info.get("bootID", ""),
    )


def read_nodes(cluster: JsonReader) -> dict[str, Node]:
    """The nodes of a cluster by name. Raises `ClusterError`."""
    return {node.name: node for node in map(parse_node, cluster.json("/api/v1/nodes")["items"])}


def parse_event(item: Json) -> Event:
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
        seconds(at or item.get("metadata", {}).get("creationTimestamp")),
    )


def parse_going(item: Json) -> Going | None:
    """A namespace of the API that is being deleted; None for one that is not."""
    meta = item["metadata"]
    if not (since := meta.get("deletionTimestamp")):
        return None
    waits = [
        f"{condition['type']}: {condition.get('message', '')}"
        for condition in true_conditions(item)
    ]
    return Going(meta["name"], seconds(since), tuple(waits), foreign_finalizers(item))


def parse_claim(item: Json) -> Claim:
    """A claim of storage of the API."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item.get("status") or {}
    requests = (spec.get("resources") or {}).get("requests") or {}
    return Claim(
        meta["namespace"],
        meta["name"],
        (status.get("capacity") or requests).get("storage", ""),
        spec.get("storageClassName") or "",
        spec.get("volumeName") or "",
        status.get("phase", ""),
    )


def amount(text: str) -> Decimal:
    """A quantity of the API as a number. Raises ValueError."""
    from kubernetes.utils.quantity import parse_quantity  # its package takes a tenth of a second

    number: Decimal = parse_quantity(text)  # type: ignore[no-untyped-call]
    return number


def count(quantity: str | int) -> int:
    """How many a quantity of the API is: it writes 1000 as `1k`."""
    text = str(quantity)
    return int(text) if text.isdecimal() else int(amount(text))
