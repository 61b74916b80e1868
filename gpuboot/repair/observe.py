"""Reads from the API server, and from Prometheus behind it, what repairs are decided by."""

from collections.abc import Mapping
from typing import Protocol

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.lookup import find_json
from gpuboot.cluster.node_gate import CONTROL_PLANE
from gpuboot.cluster.objects import (
    GPU_RESOURCES,
    JsonReader,
    Node,
    count,
    mig_devices,
    read_nodes,
    seconds,
)
from gpuboot.cluster.repair_keys import BREAKER, OPT_OUT, PAST_KEY, STATE_KEY, STOP, TAINT_KEY
from gpuboot.config.settings import Settings
from gpuboot.hosts.health_watches import UNKNOWN, Card
from gpuboot.repair.decide import World
from gpuboot.repair.repair_model import AnnotationError, Breaker, GpuNode, load, load_past
from gpuboot.repair.signals import Ignored, Signal, of_alert
from gpuboot.verify.collector import PROMETHEUS
from gpuboot.verify.prometheus import Prometheus, PrometheusError, Sample

NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
_PROMISED_GPUS = "gpuboot.io/gpus"
_MODEL = "nvidia.com/gpu.product"
# each with the moment of its evaluation as value
ALERTS = 'timestamp(ALERTS{alertstate="firing"})'
SCRAPED = "max(timestamp(up))"
STALE_S = 120  # by more than this Prometheus may not lag behind: no repair begins on old news


class Reader(JsonReader, Protocol):
    """What reads below the API server: `gpuboot.cluster.api.Cluster`."""

    def service(self, namespace: str, name: str, port: int | str) -> str: ...


def observe(cluster: Reader, settings: Settings, now: float) -> World:
    """The cluster at this moment. + now: by the API server's clock

    Raises `ClusterError` when the API server does not answer.
    """
    nodes = tuple(gpu_node(node) for node in read_nodes(cluster).values() if has_gpus(node))
    stop, breaker = (_config_map(cluster, name) for name in (STOP, BREAKER))
    alerts, stale = _alerts(cluster, settings, now)
    cards = {node.name: Card(node.pool, other_gpus=node.capacity - 1) for node in nodes}
    observations = [
        of_alert(labels, settings.alerts.xid, cards.get(labels.get("node", ""), UNKNOWN))
        for labels in alerts
    ]
    return World(
        nodes=nodes,
        signals=tuple(
            observation for observation in observations if isinstance(observation, Signal)
        ),
        ignored=tuple(
            dict.fromkeys(
                observation for observation in observations if isinstance(observation, Ignored)
            )
        ),
        breaker=_breaker(breaker),
        stale=stale,
        stopped=_stopped(stop),
    )


def has_gpus(node: Node) -> bool:
    """Whether a node is a machine with GPUs."""
    return node.labels.get(_PROMISED_GPUS, "0") != "0" or _count(node.capacity) > 0


def gpu_node(node: Node) -> GpuNode:
    """A node with GPUs, and what its annotations say of its repair."""
    notes = node.annotations
    try:
        repair = load(notes[STATE_KEY]) if STATE_KEY in notes else None
        past = load_past(notes[PAST_KEY]) if PAST_KEY in notes else ()
        error = ""
    except AnnotationError as problem:
        repair, past, error = None, (), str(problem)
    return GpuNode(
        name=node.name,
        pool=node.labels.get(_MODEL, ""),
        capacity=_count(node.capacity),
        allocatable=_count(node.allocatable),
        ready=node.ready,
        cordoned=node.cordoned,
        control_plane=CONTROL_PLANE in node.labels,
        opted_out=node.labels.get(OPT_OUT[0]) == OPT_OUT[1],
        tainted=node.has_taint(TAINT_KEY),
        boot=node.boot_id,
        repair=repair,
        past=past,
        error=error,
    )


def _count(offer: Mapping[str, str]) -> int:
    """GPUs and MIG devices."""
    return sum(count(offer.get(name, 0)) for name in GPU_RESOURCES) + sum(
        mig_devices(offer).values()
    )


def _config_map(cluster: Reader, name: str) -> Mapping[str, str] | None:
    """The data of a ConfigMap; None: there is none."""
    item = find_json(cluster, f"{CONFIG_MAPS}/{name}")
    return None if item is None else item.get("data") or {}


def _breaker(data: Mapping[str, str] | None) -> Breaker:
    """Open whatever stands in its ConfigMap: who closes it deletes that."""
    if data is None:
        return Breaker()
    try:
        opened = seconds(data.get("opened")) or 1.0
    except ValueError:
        opened = 1.0
    return Breaker(opened=opened, cause=data.get("why", "its ConfigMap does not say why"))


def _stopped(data: Mapping[str, str] | None) -> str:
    if data is None:
        return ""
    reason = f" ({data['why']})" if data.get("why") else ""
    return (
        f"the ConfigMap kube-system/{STOP} stops all repairs{reason}; to go on: "
        f"kubectl -n kube-system delete configmap {STOP}"
    )


def _alerts(cluster: Reader, settings: Settings, now: float) -> tuple[list[Mapping[str, str]], str]:
    """Labels of the alerts that fire, and why they cannot be trusted ("": they can)."""
    if not settings.monitoring.enabled:
        return [], "monitoring.enabled is off: there is no Prometheus to tell of faults"
    base = cluster.service(settings.monitoring.namespace, *PROMETHEUS)
    prometheus = Prometheus(cluster, base)
    try:
        alerts, scraped = prometheus.query(ALERTS), prometheus.query(SCRAPED)
    except (ClusterError, PrometheusError, KeyError, ValueError) as error:
        return [], f"Prometheus does not answer: {error}"
    return [sample.labels for sample in alerts], stale(alerts, scraped, now, STALE_S)


def stale(alerts: list[Sample], scraped: list[Sample], now: float, limit_s: int) -> str:
    """Why what Prometheus says is too old; "" when it is not.

    + alerts, scraped: answers to `ALERTS` and `SCRAPED`; now: by the API server's clock
    """
    clock = max((sample.time or 0.0 for sample in scraped), default=0.0)
    if not scraped:
        return "Prometheus has no samples: it scrapes nothing"
    if abs(clock - now) > limit_s:
        return f"Prometheus' clock differs from the API server's by {abs(clock - now):.0f} s"
    for subject, values in (("newest sample", scraped), ("newest evaluation of an alert", alerts)):
        age = clock - max((sample.value for sample in values), default=clock)
        if age > limit_s:
            return f"Prometheus' {subject} is {age:.0f} s old, and may be {limit_s} s old"
    return ""
