"""A cluster minute by minute, and what Prometheus would answer of it.

The truth is counted here in the plainest way, so that it shares nothing with what is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuboot.usage.series import History, StepSeries, Window

STEP_MINUTES = 60
GPU_RESOURCE, SHARED = "nvidia_com_gpu", "nvidia_com_gpu_shared"
A100, H100 = "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"
Minutes = range
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MadeNode:
    """A node of the cluster. All times are minutes of the window.

    + instances: MIG profile -> (instances, share of a GPU); {}: whole GPUs
    + cut: GPUs that are divided into these instances
    + single: instances are offered as `nvidia.com/gpu`
    + slices: time slices of each GPU
    + card_lost: the exporter shows one GPU less, whatever the kubelet still offers
    + down: the machine is off; cordoned: takes no pods; broken: one GPU is unhealthy
    + swapped: from then on its GPUs are of the other model
    """

    name: str
    cards: int
    model: str = H100
    instances: dict[str, tuple[int, float]] = field(default_factory=dict)
    cut: int = 0
    single: bool = False
    slices: int = 1
    down: Minutes = range(0)
    cordoned: Minutes = range(0)
    broken: Minutes = range(0)
    card_lost: Minutes = range(0)
    swapped: int | None = None

    def model_at(self, minute: int) -> str:
        if self.swapped is None or minute < self.swapped:
            return self.model
        return A100 if self.model == H100 else H100

    @property
    def undivided(self) -> int:
        return self.cards - self.cut

    def resources(self) -> dict[str, tuple[int, float, str]]:
        """Resource -> units, share of a GPU of each, MIG profile."""
        result = {}
        for profile, (count, part) in self.instances.items():
            name = f"nvidia_com_mig_{profile.replace('.', '_')}"
            result[GPU_RESOURCE if self.single else name] = (count, part, profile)
        if self.undivided:
            name = SHARED if self.slices > 1 else GPU_RESOURCE
            result[name] = (self.undivided * self.slices, 1 / self.slices, "")
        return result


@dataclass(frozen=True)
class MadePod:
    """A pod that holds units of a resource. active: share of time in which its GPUs work."""

    namespace: str
    name: str
    node: str
    resource: str
    units: int
    minutes: Minutes
    active: float = 0.5


@dataclass(frozen=True)
class MadeCluster:
    """The cluster, and who was not watching when.

    + declared: the inventory says how many GPUs each node has
    + gaps: minutes without any sample; silent: without kube-state-metrics; blind: without exporters
    """

    nodes: tuple[MadeNode, ...]
    pods: tuple[MadePod, ...] = ()
    hours: int = 4
    declared: bool = True
    gaps: frozenset[int] = frozenset()
    silent: frozenset[int] = frozenset()
    blind: frozenset[int] = frozenset()
    start: int = 1_790_000_000 // 86400 * 86400

    @property
    def minutes(self) -> Minutes:
        return range(self.hours * 60)

    def is_scraped(self, minute: int) -> bool:
        """Whether kube-state-metrics was heard."""
        return minute not in self.gaps and minute not in self.silent

    def node(self, name: str) -> MadeNode:
        return next(node for node in self.nodes if node.name == name)

    def share(self, pod: MadePod) -> float:
        """GPUs that a pod holds."""
        return pod.units * self.node(pod.node).resources()[pod.resource][1]

    def held_hours(self, pod: MadePod) -> float:
        """GPU hours that a pod can be known to have held."""
        return self.share(pod) * sum(self.is_scraped(minute) for minute in pod.minutes) / 60

    def installed(self) -> float:
        """GPU hours, seen or not."""
        return sum(node.cards for node in self.nodes) * self.hours

    def units_held(self, node: MadeNode, resource: str, minute: int) -> int:
        return sum(
            pod.units for pod in self.pods
            if (pod.node, pod.resource) == (node.name, resource) and minute in pod.minutes
        )  # fmt: skip

    def free(self) -> float:
        """GPU hours that somebody could have had, and of which that is known."""
        return sum(
            max(0, units - lost_units - self.units_held(node, resource, minute)) * part / 60
            for node in self.nodes for minute in self.minutes
            if self.is_scraped(minute) and minute not in node.down and minute not in node.cordoned
            for resource, (units, part, _) in node.resources().items()
            for lost_units in [_lost_units(node, resource, minute)]
        )  # fmt: skip

    def stranded(self) -> float:
        """GPU hours of cut cards that no instance covers, while somebody tells of them."""
        return sum(
            max(0.0, node.cut - sum(count * part for count, part in node.instances.values()))
            for node in self.nodes for minute in self.minutes if self.is_scraped(minute)
        ) / 60  # fmt: skip

    def history(self) -> History:
        """The answers to the queries of a report."""
        window = Window(self.start, self.start + self.hours * 3600, STEP_MINUTES * 60)
        sums: dict[str, dict[Labels, dict[int, float]]] = {}
        for minute in self.minutes:
            step = self.start + minute // STEP_MINUTES * STEP_MINUTES * 60
            for query, labels, value in self._samples(minute):
                series = sums.setdefault(query, {}).setdefault(tuple(sorted(labels.items())), {})
                series[step] = series.get(step, 0.0) + value
        by_query = {
            query: tuple(StepSeries(dict(labels), values) for labels, values in series.items())
            for query, series in sums.items()
        }
        return History(window, by_query, {"cluster": "made"})

    def _samples(self, minute: int) -> Iterator[tuple[str, dict[str, str], float]]:
        if minute in self.gaps:
            return
        for node in self.nodes:
            if self.declared:
                yield "promised", {"node": node.name}, node.cards
                yield "promised_minutes", {"node": node.name}, 1
            if self.is_scraped(minute):
                yield from self._of_kubernetes(node, minute)
            if minute not in self.blind and minute not in node.down:
                yield from self._of_exporter(node, minute)

    def _of_kubernetes(
        self, node: MadeNode, minute: int
    ) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "reported", {"node": node.name}, 1
        closed = minute in node.down or minute in node.cordoned
        for resource, (units, _, _) in node.resources().items():
            labels = {"node": node.name, "resource": resource}
            yield "capacity", labels, units
            free_count = (
                units
                - _lost_units(node, resource, minute)
                - self.units_held(node, resource, minute)
            )
            yield "closed" if closed else "free", labels, max(0, free_count)
        for pod in self.pods:
            if pod.node == node.name and minute in pod.minutes:
                pod_labels = {"namespace": pod.namespace, "pod": pod.name, "node": node.name}
                yield "held", {**pod_labels, "resource": pod.resource}, pod.units

    def _of_exporter(
        self, node: MadeNode, minute: int
    ) -> Iterator[tuple[str, dict[str, str], float]]:
        model = node.model_at(minute)
        missing = int(minute in node.card_lost)
        if node.cards == missing:
            return
        yield "seen", {"node": node.name}, 1
        yield "cards", {"node": node.name, "modelName": model}, node.cards - missing
        cut = node.cut - missing if node.cut else 0
        per_card = {profile: count // node.cut for profile, (count, _) in node.instances.items()}
        physical = {profile: count * cut for profile, count in per_card.items()}
        for profile, count in {**physical, "": node.cards - missing - cut}.items():
            labels = {"node": node.name, "modelName": model, "GPU_I_PROFILE": profile}
            if count:
                yield "devices", labels, count
        yield "power_node", {"node": node.name}, 100.0 * node.cards
        yield "energy", {"node": node.name}, 100.0 * node.cards / 60_000
        for pod in self.pods:
            if pod.node != node.name or minute not in pod.minutes:
                continue
            _, _, profile = node.resources()[pod.resource]
            slices = node.slices if not profile else 1
            pod_labels = {"namespace": pod.namespace, "pod": pod.name, "node": node.name}
            labels = {**pod_labels, "modelName": model, "GPU_I_PROFILE": profile}
            yield "measured", labels, pod.units / slices
            yield "used", labels, pod.units / slices * pod.active
            yield "sm", labels, pod.units / slices * pod.active * 0.75
            yield "power_pod", pod_labels, 100.0 * self.share(pod)


def _lost_units(node: MadeNode, resource: str, minute: int) -> int:
    """Units that one broken GPU or instance takes away."""
    first = next(iter(node.resources()))
    if resource != first or minute not in node.broken:
        return 0
    return 1 if node.resources()[first][2] else node.slices


def example() -> History:
    """What docs/cost.md shows: two nodes, a night in which the clocks of Berlin went back."""
    nodes = (
        MadeNode("gpu1", 8, cordoned=range(18 * 60, 24 * 60)),
        MadeNode("gpu2", 4, instances={"1g.10gb": (7, 1 / 7)}, cut=1, broken=range(60, 300)),
    )
    pods = (
        MadePod("ml", "llama-0", "gpu1", GPU_RESOURCE, 6, range(90, 16 * 60), 0.83),
        MadePod("ml", "notebook-7f", "gpu2", "nvidia_com_mig_1g_10gb", 3, range(24 * 60), 0.04),
        MadePod("web", "chat-5c9", "gpu1", GPU_RESOURCE, 2, range(24 * 60), 0.31),
    )
    start = 1_792_872_000  # 2026-10-24 20:00 UTC
    cluster = MadeCluster(nodes, pods, 24, gaps=frozenset(range(600, 640)), start=start)
    history = cluster.history()
    label = StepSeries(
        {"namespace": "ml", "label_team": "research"}, dict.fromkeys(history.window.steps, 60.0)
    )
    metadata = {"cluster": "example", "cost": {"time_zone": "Europe/Berlin"}}
    return History(history.window, {**history.series, "teams": (label,)}, metadata)
