"""How many series the exporter makes, and what Prometheus needs for them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuboot.hosts import gpu_sharing
from gpuboot.telemetry.collectors import collected
from gpuboot.telemetry.fields import BY_NAME, Limit

if TYPE_CHECKING:
    from gpuboot.config.settings import Settings

# Series of one field on one GPU where it is not one: DCGM's health watches and reasons to hold
# clocks down (gpu_health_collector.go, clock_events_collector.go of dcgm-exporter), and an
# allowance of two XID codes.
_SERIES_PER_GPU = {
    "DCGM_EXP_GPU_HEALTH_STATUS": 11,
    "DCGM_EXP_CLOCK_EVENTS_TOTAL": 9,
    "DCGM_EXP_CLOCK_EVENTS_COUNT": 9,
    "DCGM_EXP_XID_ERRORS_TOTAL": 2,
    "DCGM_EXP_XID_ERRORS_COUNT": 2,
}
_PEERS = "DCGM_EXP_P2P_STATUS"
# Under time-slicing these have the whole GPU's series beside one per pod (process_metrics.go).
_PER_PROCESS = {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"}
# up, scrape_duration_seconds and the like, which Prometheus adds to each target.
_SCRAPE = 5

# robustperception.io, "How much RAM does Prometheus 2.x need for cardinality and ingestion?"
_SERIES_BYTES, _LABEL_BYTES, _SAMPLE_BYTES, _CHUNK_OVERHEAD, _COLLECTOR = 732, 32, 1.3, 1.5, 2
_HEAD_SECONDS = 3 * 3600
# A GPU series as this scrape shape makes it: its labels, and its length in the text format.
_LABELS, _LENGTH = 13, 330
# prometheus.io, "Storage": 1 to 2 bytes per sample on disk.
_DISK_BYTES = 2


@dataclass(frozen=True)
class Shape:
    """A cluster of equal nodes.

    + nodes: GPU nodes
    + gpus: GPUs of each
    + slices: MIG slices of each GPU; 0: no MIG
    + holders: pods that held each GPU or slice, one after the other, in the last three hours,
      which is what Prometheus keeps in memory; each makes all series of its GPU once more
    + missing: limits that keep fields from having a value on these GPUs
    """

    nodes: int = 1
    gpus: int = 8
    slices: int = 0
    holders: int = 1
    missing: Collection[Limit] = ()


@dataclass(frozen=True)
class Series:
    """How many there are in Prometheus' memory: of one GPU, of one node, of the whole cluster."""

    gpu: int
    node: int
    total: int


def series(settings: Settings, shape: Shape) -> Series:
    """The most series the exporter makes with these settings on such a cluster.

    + settings: which fields are collected, and how many pods share a GPU
    + shape: the cluster; without `lacking`, every collected field is taken to have a value

    A field that is not in our table counts once. What is raised: see `telemetry.collected`.
    """
    gpu = sum(_of_field(name, settings, shape) for name in collected(settings)) * shape.holders
    node = gpu * shape.gpus + _SCRAPE
    return Series(gpu, node, node * shape.nodes)


def _of_field(name: str, settings: Settings, shape: Shape) -> int:
    field = BY_NAME.get(name)
    if field is not None and set(field.limits) & set(shape.missing):
        return 0
    per_gpu = shape.gpus - 1 if name == _PEERS else _SERIES_PER_GPU.get(name, 1)
    pods = gpu_sharing.most_replicas(settings)
    if field is not None and field.level == "once" and shape.slices:
        return per_gpu
    extra = 1 if pods > 1 and name in _PER_PROCESS else 0
    return max(1, shape.slices) * (per_gpu * pods + extra)


def memory_bytes(series: int, interval_s: float, pod_labels: int = 0) -> float:
    """Prometheus' memory for so many GPU series, without that of queries and of other series.

    + series: see `series`
    + interval_s: seconds between two samples
    + pod_labels: labels of pods that are added to each series

    The formula is Robust Perception's, from profiles of Prometheus 2.9: an estimate.
    """
    name = _SERIES_BYTES + _LABEL_BYTES * (_LABELS + pod_labels) + 2 * _LENGTH
    samples = _HEAD_SECONDS / interval_s * _SAMPLE_BYTES * _CHUNK_OVERHEAD
    return series * (name + samples) * _COLLECTOR


def disk_bytes(series: int, interval_s: float, retention_s: float) -> float:
    """Prometheus' disk for so many series, by the upper end of what its documentation says."""
    return series / interval_s * retention_s * _DISK_BYTES
