"""A made-up cluster of recorded kinds of GPUs, as series: what pictures of dashboards show.

Its nodes and pods are in all the states that a dashboard has to tell: busy, idle and shared GPUs,
a cordoned node, one that is not proven, an exporter that is down, faults, pods that wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gpuboot.config.inventory import Node
from tests.populations.model import Card, Instance, Population
from tests.populations.page import WATCHES, Page
from tests.populations.table import POPULATIONS

MINUTES = 240
Value = Callable[[float], float | None]
Series = tuple[str, dict[str, str], Value]


def _node(kind: str, name: str, cards: int) -> tuple[str, Population]:
    """A node with so many GPUs of a kind. + cards: how many; 0: as recorded"""
    of = POPULATIONS[kind]
    first = of.cards[0]
    copies = tuple(
        replace(first, index=number, uuid=f"GPU-{name}-{number}") for number in range(cards)
    )
    return name, replace(of, cards=copies or of.cards)


NODES = dict(
    (
        _node("h100-sxm", "train1", 8),
        _node("h100-sxm", "train2", 8),
        _node("h100-sxm", "train3", 4),
        _node("mig-h100-mixed", "mig1", 0),
        _node("t4", "infer1", 2),
        _node("vgpu-guest", "vm1", 1),
    )
)
INVENTORY = tuple(
    Node(name, name, "10.0.0.1", "worker", len(of.cards), False) for name, of in NODES.items()
)
CORDONED, UNPROVEN, DOWN = "train2", "train3", "infer1"
DOWN_SINCE = 212


@dataclass(frozen=True)
class Work:
    """A pod, and what it does with GPUs.

    + devices: indices of the node's GPUs, or of the MIG instances of its first
    + shares: of time in which engine, SMs, tensor cores and memory work
    + since, until: minutes; period: minutes of a wave of requests, 0: steady
    """

    namespace: str
    pod: str
    node: str
    devices: tuple[int, ...]
    shares: tuple[float, float, float, float]
    since: float = 0
    until: float = MINUTES + 1
    period: float = 0

    def level(self, minute: float, device: int) -> float:
        """How much of its shares it reaches, 0 to 1."""
        wave = 0.55 + 0.45 * math.sin(2 * math.pi * minute / self.period) if self.period else 0.96
        return wave + 0.01 * math.sin(minute / (3 + device) + device)

    def runs(self, minute: float) -> bool:
        return self.since <= minute < self.until


PODS = (
    Work("research", "llm-pretrain-0", "train1", (0, 1, 2, 3, 4, 5), (0.98, 0.86, 0.58, 0.47)),
    Work("vision", "segment-7b4", "train1", (6,), (0.93, 0.34, 0.12, 0.2), 95),
    Work("research", "llm-pretrain-1", "train2", (0, 1, 2, 3), (0.97, 0.84, 0.55, 0.45)),
    Work("serving", "chat-0", "train2", (4, 5), (0.9, 0.62, 0.3, 0.68), period=70),
    Work("notebooks", "notebook-anna", "train2", (6,), (0.0, 0.0, 0.0, 0.0)),
    Work("serving", "rerank-2", "mig1", (0,), (0.7, 0.52, 0.2, 0.4), period=45),
    Work("notebooks", "notebook-tom", "mig1", (1,), (0.01, 0.0, 0.0, 0.0)),
    Work("serving", "speech-0", "vm1", (0,), (0.8, 0.5, 0.2, 0.3), period=50),
    Work("vision", "labels-3", "infer1", (0,), (0.6, 0.5, 0.1, 0.3), until=DOWN_SINCE),
)
WAITING = {("research", "llm-pretrain-2"): (8, 64.0), ("vision", "segment-9c1"): (1, 6.0)}
_FOLLOWS = {
    "GR_ENGINE_ACTIVE": 0,
    "SM_ACTIVE": 1,
    "SM_OCCUPANCY": 1,
    "PIPE_TENSOR_ACTIVE": 2,
    "DRAM_ACTIVE": 3,
}
_QUIET_PIPES = {"PIPE_FP64_ACTIVE": 0.0, "PIPE_FP32_ACTIVE": 0.3, "PIPE_FP16_ACTIVE": 0.08}
# What a GPU shows beside its kind's values: (node, index) -> metric -> value, from a minute on.
FAULTS = {
    ("train1", 3): {
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": (64.0, 180),
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS": (9e9, 180),
        "DCGM_FI_DEV_GPU_TEMP": (86.0, 178),
        "DCGM_FI_DEV_GPU_TEMP_LIMIT": (2.0, 178),
    },
    ("train2", 7): {
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": (1.0, 160),
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": (4.0, 160),
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": (1.0, 160),
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": (1.0, 160),
    },
    ("train2", 5): {"DCGM_FI_DEV_ROW_REMAP_PENDING": (1.0, 200)},
}
XIDS = {("train2", 7): (95, 160), ("train1", 6): (13, 122)}  # (XID, minute)


def exporter(name: str, of: Population) -> Iterator[Series]:
    """What the exporter of a node shows: name, labels and value of each series."""
    target = {"job": "nvidia-dcgm-exporter", "node": name, "instance": name}
    yield "up", target, lambda minute: float(_answers(name, minute))
    page = Page(of)
    for card, instance in page.devices:
        device = card.instances.index(instance) if instance else card.index
        labels = {**target, **page.labels(card, instance)}
        for metric in of.metrics(card, instance):
            if metric != "DCGM_EXP_GPU_HEALTH_STATUS":
                yield from _field(name, of, (card, instance, device), metric, labels)
    for card in of.cards:
        labels = {**target, **page.labels(card, None)}
        for watch in WATCHES[:10]:
            failed = (name, card.index, watch) == ("train2", 7, "MEM")
            passes = {**labels, "health_watch": watch, "health_error_code": "DCGM_FR_OK"}
            well = steps((0, 0.0), (160, None)) if failed else steps((0, 0.0))
            yield "DCGM_EXP_GPU_HEALTH_STATUS", passes, _while_up(name, well)
            if failed:
                fails = {**passes, "health_error_code": "DCGM_FR_VOLATILE_DBE_DETECTED"}
                yield "DCGM_EXP_GPU_HEALTH_STATUS", fails, steps((0, None), (160, 20.0))
        if (name, card.index) in XIDS:
            xid, at = XIDS[name, card.index]
            counted = {**labels, "xid": str(xid)}
            yield "DCGM_EXP_XID_ERRORS_TOTAL", counted, steps((0, None), (at, 1.0))


def steps(*parts: tuple[float, float | None]) -> Value:
    """A value that changes at some minutes. + parts: minute, and the value from then on"""
    return lambda minute: next(value for since, value in reversed(parts) if minute >= since)


def _while_up(node: str, value: Value) -> Value:
    return lambda minute: value(minute) if _answers(node, minute) else None


def _answers(node: str, minute: float) -> bool:
    return node != DOWN or minute < DOWN_SINCE


def _field(
    node: str,
    of: Population,
    device: tuple[Card, Instance | None, int],
    metric: str,
    labels: dict[str, str],
) -> Iterator[Series]:
    """A field of a GPU: one series for each pod that holds it, and one while none does."""
    card, instance, number = device
    idle, busy = of.metrics(card, instance)[metric], of.metrics(card, instance, busy=True)[metric]
    fault, since = FAULTS.get((node, card.index), {}).get(metric, (0.0, math.inf))
    pods = [pod for pod in PODS if pod.node == node and number in pod.devices]

    def value(pod: Work | None) -> Value:
        def at(minute: float) -> float | None:
            runs = next((gpu_pod for gpu_pod in pods if gpu_pod.runs(minute)), None)
            if runs is not pod or not _answers(node, minute):
                return None
            if minute >= since:
                return fault * (minute - since) if metric.endswith("_NS") else fault
            return _worth(metric, idle, busy, pod, minute, number)

        return at

    yield metric, labels, value(None)
    for pod in pods:
        pod_labels = {"namespace": pod.namespace, "pod": pod.pod, "container": "main"}
        yield metric, {**labels, **pod_labels}, value(pod)


def _worth(
    metric: str, idle: float, busy: float, pod: Work | None, minute: float, number: int
) -> float:
    """A field's value under a pod's work."""
    if metric.endswith("ENERGY_CONSUMPTION"):
        return idle + minute * 6e4 * (400 if pod else 70)  # mJ
    level = pod.level(minute, number) if pod else 0.0
    shares = pod.shares if pod else (0.0, 0.0, 0.0, 0.0)
    short = metric.removeprefix("DCGM_FI_PROF_")
    if short in _FOLLOWS:
        return max(shares[_FOLLOWS[short]] * level * (0.4 if "OCCUPANCY" in short else 1), 0)
    if short in _QUIET_PIPES:
        return max(_QUIET_PIPES[short] * shares[2] * level, 0)
    if "NVLINK" in short and short.endswith("BYTES"):
        return max(1.9e11 * shares[2] * level, 0)
    if (
        metric in {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"}
        or "CLOCK" in metric
        or "LINK_GEN" in metric
    ):
        return busy if pod and shares[0] > 0.05 else idle
    return idle + (busy - idle) * min(max(shares[0] * level, 0), 1)
