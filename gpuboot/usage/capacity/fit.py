"""What fits into the cluster now: the largest job, and free GPUs that no job can get, with why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from gpuboot.cluster import node_gate
from gpuboot.cluster.objects import GPU_RESOURCES, Json, Node, amount, parse_node
from gpuboot.cluster.pods import Pod, parse_pod
from gpuboot.hosts.mig_devices import MIG_PREFIX

PATHS = {"nodes": "/api/v1/nodes", "pods": "/api/v1/pods"}
_TOLERATED = ("nvidia.com/gpu",)  # jobs that ask for GPUs tolerate it, by themselves or admission
_GIB = 2**30


@dataclass(frozen=True)
class Shape:
    """What a job takes beside each GPU or MIG device. + cpu: cores; memory: GiB"""

    cpu: float = 1.0
    memory: float = 4.0


@dataclass(frozen=True)
class NodeFit:
    """GPUs of a node, or its MIG devices of one profile.

    + capacity, held: as the kubelet counts them, and what pods hold
    + usable: free, and a job can get them; stranded: reason -> how many that no job can get
    """

    node: str
    model: str
    resource: str
    capacity: int
    held: int
    usable: int
    stranded: Mapping[str, int]


@dataclass(frozen=True)
class Waiting:
    """A pod without a node. + count: GPUs or MIG devices it asks for; why: the scheduler's words"""

    pod: str
    resource: str
    count: int
    why: str


@dataclass(frozen=True)
class Fit:
    """All GPU nodes, and the pods that wait."""

    nodes: tuple[NodeFit, ...]
    waiting: tuple[Waiting, ...]
    shape: Shape

    def to_json(self) -> dict[str, Any]:
        document = asdict(self)
        document["largest"] = [
            {
                "model": model,
                "resource": resource,
                "pod": max(sizes(nodes), default=0),
                "pods_by_size": {str(size): count for size, count in sizes(nodes).items()},
            }
            for (model, resource), nodes in self.by_pool().items()
        ]
        return document

    def by_pool(self) -> dict[tuple[str, str], list[NodeFit]]:
        """Its nodes by model and resource."""
        pools: dict[tuple[str, str], list[NodeFit]] = defaultdict(list)
        for node in self.nodes:
            pools[node.model, node.resource].append(node)
        return dict(sorted(pools.items()))


def sizes(nodes: Iterable[NodeFit]) -> dict[int, int]:
    """How many pods of 1, 2, 4, … GPUs and of the largest size fit now, each on one node."""
    usable = [node.usable for node in nodes]
    maximum = max(usable, default=0)
    steps = {2**power for power in range(maximum.bit_length()) if 2**power <= maximum} | {maximum}
    return {size: sum(free // size for free in usable) for size in sorted(steps - {0})}


def fit(nodes: Sequence[Json], pods: Sequence[Json], shape: Shape) -> Fit:
    """What fits. + nodes, pods: objects of the API server, all of them"""
    by_node: dict[str, list[tuple[Json, Pod]]] = defaultdict(list)
    waiting: list[Waiting] = []
    for item in pods:
        pod = parse_pod(item)
        if pod.finished:
            continue
        if pod.node:
            by_node[pod.node].append((item, pod))
        else:
            waiting += _waits(pod)
    rows = [
        row for node in map(parse_node, nodes) for row in _rows(node, by_node[node.name], shape)
    ]
    rows.sort(key=lambda row: (row.model, row.resource, row.node))
    return Fit(tuple(rows), tuple(sorted(waiting, key=lambda entry: -entry.count)), shape)


def _rows(node: Node, pods: Sequence[tuple[Json, Pod]], shape: Shape) -> Iterator[NodeFit]:
    """A row for each resource. What one row may take of cores and memory, the next cannot."""
    capacity, allocatable = node.capacity, node.allocatable
    held_units = sum((Counter(pod.devices) for _, pod in pods), Counter[str]())
    blocked = _blocked(node)
    spare = _spare(allocatable, [item for item, _ in pods])
    for resource in sorted(name for name in capacity if _is_gpu(name)):
        total, healthy = int(capacity[resource]), int(allocatable.get(resource, 0))
        if not total:
            continue
        free = max(0, healthy - held_units[resource])
        usable, cause = (0, blocked) if blocked else _fitting(free, spare, shape)
        spare = spare.less(usable, shape)
        stranded = {
            "unhealthy: the device plugin does not offer them": total - healthy,
            cause: free - usable,
        }
        yield NodeFit(
            node.name,
            node.labels.get("nvidia.com/gpu.product", ""),
            resource,
            total,
            held_units[resource],
            usable,
            {reason: count for reason, count in stranded.items() if count > 0},
        )


def _is_gpu(resource: str) -> bool:
    return resource in GPU_RESOURCES or resource.startswith(MIG_PREFIX)


def _blocked(node: Node) -> str:
    """Why the scheduler puts no job there; "" where it does."""
    if not node.ready:
        return "the node is not Ready"
    if node_gate.is_closed(node):
        return f"not proven ({node_gate.KEY})"
    if node.cordoned:
        return "cordoned"
    if taint := node.untolerated_taint(_TOLERATED):
        return f"taint {taint}"
    return ""


@dataclass(frozen=True)
class _Spare:
    """What pods of a node have left. + cpu: cores; memory: GiB; pods: number"""

    cpu: float
    memory: float
    pods: int

    def less(self, gpus: int, shape: Shape) -> _Spare:
        return _Spare(
            self.cpu - gpus * shape.cpu, self.memory - gpus * shape.memory, self.pods - bool(gpus)
        )


def _spare(allocatable: Mapping[str, str], pods: Sequence[Json]) -> _Spare:
    used = [_requests(pod) for pod in pods]
    return _Spare(
        float(amount(allocatable.get("cpu", "0")) - sum(request["cpu"] for request in used)),
        float(amount(allocatable.get("memory", "0")) - sum(request["memory"] for request in used))
        / _GIB,
        int(amount(allocatable.get("pods", "110"))) - len(pods),
    )


def _fitting(free: int, spare: _Spare, shape: Shape) -> tuple[int, str]:
    """How many of the free ones a job can get, and what the others lack."""
    limits = [
        (_times(spare.cpu, shape.cpu), f"CPU used up ({max(0.0, spare.cpu):.1f} cores left)"),
        (_times(spare.memory, shape.memory),
         f"memory used up ({max(0.0, spare.memory):.1f} GiB left)"),
        (free if spare.pods > 0 else 0, "as many pods as the kubelet allows"),
    ]  # fmt: skip
    capacity, reason = min(limits, key=lambda limit: limit[0])
    return (free, "") if capacity >= free else (max(0, capacity), reason)


def _times(spare: float, per_gpu: float) -> int:
    return int(spare / per_gpu + 1e-9) if per_gpu > 0 else 2**31


def _requests(pod: Json) -> dict[str, Decimal]:
    """Cores and bytes that the scheduler counts for a pod, its init containers included."""
    spec = pod["spec"]
    totals = {}
    for name in ("cpu", "memory"):
        running = sum(
            (_request(container, name) for container in spec.get("containers", ())), Decimal(0)
        )
        peak = Decimal(0)
        for container in spec.get("initContainers", ()):
            if container.get("restartPolicy") == "Always":
                running += _request(container, name)
            else:
                peak = max(peak, _request(container, name))
        overhead = amount(str(spec.get("overhead", {}).get(name, "0")))
        totals[name] = max(running, peak) + overhead
    return totals


def _request(container: Json, name: str) -> Decimal:
    resources = container.get("resources") or {}
    quantities = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return amount(str(quantities.get(name, "0")))


def _waits(pod: Pod) -> Iterator[Waiting]:
    for resource, count in pod.devices.items():
        if _is_gpu(resource):
            yield Waiting(pod.key, resource, count, pod.waits)
