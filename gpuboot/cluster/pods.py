"""Pods as everything in gpuboot looks at them, out of the API server's JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpuboot.cluster.limit_ranges import default_memory
from gpuboot.cluster.objects import (
    GPU_RESOURCES,
    Condition,
    Json,
    JsonReader,
    annotations_of,
    count,
    labels_of,
    mig_devices,
    parse_conditions,
    seconds,
)
from gpuboot.telemetry.collectors import COLLECTORS_ANNOTATION

FINISHED_PHASES = ("Succeeded", "Failed")
_PREFIX = "nvidia.com/"
# made by the kubelet itself, of a file on its host
_STATIC = "kubernetes.io/config.mirror"


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
    + exit_code: of one that has ended and runs no more; else 0
    """

    name: str
    ready: bool = False
    restarts: int = 0
    state: str = ""
    reason: str = ""
    message: str = ""
    termination: Termination | None = None
    started: float = 0.0
    exit_code: int = 0

    @property
    def waits(self) -> bool:
        """Whether it has not started."""
        return self.state in ("", "waiting")


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod.

    + owner: kind and name of its controller; "" for none
    + reason, message: why it is in its phase, where Kubernetes says so
    + waits: why the scheduler finds no node; "" when it has one
    + claims: names of the volume claims that it mounts
    + devices: GPUs, MIG devices and others of NVIDIA's resources that it was given, by resource
    + stamp: digest of the collectors that an exporter started with
    + default_memory: as of `limit_ranges.default_memory`
    + static: its kubelet made it, so nothing makes it again when it is deleted
    + created: when it was made, in seconds since 1970
    + deleted: when it should be gone, as somebody has asked for; 0.0 where nobody has
    + finalizers: what has to be taken off it before it goes
    + address: its IP address; "" before it has one
    + containers: its init containers, then the others
    """

    namespace: str
    name: str
    node: str = ""
    phase: str = ""
    owner: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    ready: bool = False
    going: bool = False
    reason: str = ""
    message: str = ""
    waits: str = ""
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    runtime_class: str = ""
    devices: Mapping[str, int] = field(default_factory=dict)
    stamp: str = ""
    default_memory: Mapping[str, str] = field(default_factory=dict)
    static: bool = False
    created: float = 0.0
    deleted: float = 0.0
    finalizers: tuple[str, ...] = ()
    address: str = ""
    containers: tuple[Container, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.phase in FINISHED_PHASES

    @property
    def gpus(self) -> int:
        """How many GPUs it was given, whole or shared."""
        return sum(self.devices.get(name, 0) for name in GPU_RESOURCES)

    @property
    def mig(self) -> dict[str, int]:
        """MIG devices that it was given, by resource."""
        return mig_devices(self.devices)

    @property
    def started(self) -> float:
        """When its youngest container was started that runs; 0.0 where none runs."""
        return max((container.started for container in self.containers), default=0.0)

    def container(self, name: str) -> Container:
        """A container by its name; one that waits where the kubelet has not told of it."""
        return next((item for item in self.containers if item.name == name), Container(name))


def parse_pod(item: Json) -> Pod:
    """A pod of the API."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    conditions = parse_conditions(item)
    scheduled = conditions.get("PodScheduled", Condition())
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    statuses = {
        entry["name"]: entry
        for key in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(key) or ()
    }
    names = dict.fromkeys([*(entry.get("name", "") for entry in containers), *statuses])
    return Pod(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        node=spec.get("nodeName", ""),
        phase=status.get("phase", ""),
        owner=_owner(meta),
        labels=labels_of(item),
        conditions=conditions,
        ready=conditions.get("Ready", Condition()).status == "True",
        going="deletionTimestamp" in meta,
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        waits=scheduled.message if scheduled.status == "False" else "",
        gates=tuple(entry["name"] for entry in spec.get("schedulingGates") or ()),
        claims=tuple(_claims(spec)),
        runtime_class=spec.get("runtimeClassName", ""),
        devices=_devices(spec),
        stamp=annotations_of(item).get(COLLECTORS_ANNOTATION, ""),
        default_memory=default_memory(item),
        static=_STATIC in annotations_of(item),
        created=seconds(meta.get("creationTimestamp")),
        deleted=seconds(meta.get("deletionTimestamp")),
        finalizers=tuple(meta.get("finalizers") or ()),
        address=status.get("podIP", ""),
        containers=tuple(_container(name, statuses.get(name, {})) for name in names),
    )


def holders(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods that hold GPUs: they are on a node, and have not ended.

    A kubelet gives a pod its GPUs before its first container starts, and takes them back when the
    last one has ended: a pod that is starting or ending holds them as well.
    """
    return tuple(pod for pod in pods if pod.node and not pod.finished and (pod.gpus or pod.mig))


def read_holders(cluster: JsonReader, query: Mapping[str, str] | None = None) -> tuple[Pod, ...]:
    """`holders` of the pods of a cluster. Raises `ClusterError`."""
    return holders(map(parse_pod, cluster.json("/api/v1/pods", query)["items"]))


def _owner(meta: Json) -> str:
    owners = [owner for owner in meta.get("ownerReferences") or () if owner.get("controller")]
    return f"{owners[0]['kind']} {owners[0]['name']}" if owners else ""


def _claims(spec: Json) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield claim["claimName"]


def _devices(spec: Json) -> dict[str, int]:
    """What the scheduler counts, by resource: extended resources have limits = requests.

    The sum of the containers, or one init container's where that is more.
    """
    counts: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        counts += _limits(container)
    for container in spec.get("initContainers") or ():
        counts |= _limits(container)
    return dict(+counts)


def _limits(container: Json) -> Counter[str]:
    limits = (container.get("resources") or {}).get("limits") or {}
    return Counter(
        {name: count(amount) for name, amount in limits.items() if name.startswith(_PREFIX)}
    )


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
        now.get("exitCode", 0),
    )


def _termination(item: Json) -> Termination:
    return Termination(
        item.get("reason") or "",
        item.get("exitCode", 0),
        item.get("message") or "",
        seconds(item.get("finishedAt")),
    )
