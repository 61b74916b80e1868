"""Reads from the API server, and from Prometheus behind it, what repairs are decided by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.gate import CONTROL_PLANE
from gpuboot.cluster.repair_keys import BREAKER, OPT_OUT, PAST_KEY, STATE_KEY, STOP, TAINT_KEY
from gpuboot.config.settings import Settings
from gpuboot.hosts.health_watches import UNKNOWN, Card
from gpuboot.hosts.mig_devices import MIG_PREFIX
from gpuboot.repair.decide import World
from gpuboot.repair.model import AnnotationError, Breaker, GpuNode, load, load_past, seconds
from gpuboot.repair.signals import Ignored, Signal, of_alert
from gpuboot.verify.collector import PROMETHEUS
from gpuboot.verify.kube_objects import GPU_RESOURCES
from gpuboot.verify.prometheus import Prometheus, PrometheusError, Sample

NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
_PROMISED_GPUS = "gpuboot.io/gpus"
_MODEL = "nvidia.com/gpu.product"
# each with the moment of its evaluation as value
ALERTS = 'timestamp(ALERTS{alertstate="firing"})'
SCRAPED = "max(timestamp(up))"
STALE_S = 120  # by more than this Prometheus may not lag behind: no repair begins on old news


class Reader(Protocol):
    """What reads below the API server: `gpuboot.cluster.api.Cluster`."""

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any: ...

    def service(self, namespace: str, name: str, port: int | str) -> str: ...


def observe(cluster: Reader, settings: Settings, now: float) -> World:
    """The cluster at this moment. + now: by the API server's clock

    Raises `ClusterError` when the API server does not answer.
    """
    items = cluster.json(NODES)["items"]
    nodes = tuple(parse_node(item) for item in items if has_gpus(item))
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


def has_gpus(item: Mapping[str, Any]) -> bool:
    """Whether a node object is of a machine with GPUs."""
    labels = item["metadata"].get("labels", {})
    return labels.get(_PROMISED_GPUS, "0") != "0" or _count(item["status"].get("capacity", {})) > 0


def parse_node(item: Mapping[str, Any]) -> GpuNode:
    """A node object with GPUs, as the API's JSON has it."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item["status"]
    labels, notes = meta.get("labels", {}), meta.get("annotations", {})
    conditions = {
        condition["type"]: condition["status"] for condition in status.get("conditions", ())
    }
    try:
        repair = load(notes[STATE_KEY]) if STATE_KEY in notes else None
        past = load_past(notes[PAST_KEY]) if PAST_KEY in notes else ()
        error = ""
    except AnnotationError as problem:
        repair, past, error = None, (), str(problem)
    return GpuNode(
        name=meta["name"],
        pool=labels.get(_MODEL, ""),
        capacity=_count(status.get("capacity", {})),
        allocatable=_count(status.get("allocatable", {})),
        ready=conditions.get("Ready") == "True",
        cordoned=bool(spec.get("unschedulable")),
        control_plane=CONTROL_PLANE in labels,
        opted_out=labels.get(OPT_OUT[0]) == OPT_OUT[1],
        tainted=any(taint["key"] == TAINT_KEY for taint in spec.get("taints", ())),
        boot=status.get("nodeInfo", {}).get("bootID", ""),
        repair=repair,
        past=past,
        error=error,
    )


def _count(offer: Mapping[str, str]) -> int:
    """GPUs and MIG devices."""
    return sum(
        int(count)
        for name, count in offer.items()
        if name in GPU_RESOURCES or name.startswith(MIG_PREFIX)
    )


def _config_map(cluster: Reader, name: str) -> Mapping[str, str] | None:
    """The data of a ConfigMap; None: there is none."""
    try:
        data: Mapping[str, str] = cluster.json(f"{CONFIG_MAPS}/{name}").get("data") or {}
    except ClusterError as error:
        if error.status == 404:
            return None
        raise
    return data


def _breaker(data: Mapping[str, str] | None) -> Breaker:
    """Open whatever stands in its ConfigMap: who closes it deletes that."""
    if data is None:
        return Breaker()
    try:
        opened = seconds(data.get("opened", ""))
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
