"""Means of five minutes of a GPU's or MIG instance's counters, from the samples as scraped."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuboot.monitoring.rules.promql import ENGINE, UTIL
from gpuboot.query.latest_samples import (
    Device,
    Points,
    device,
    is_profiling_dead,
    known_points,
    merge,
)
from gpuboot.verify.prometheus import Series

MEAN_S = 300.0
# value of `Means` -> gauge that it is the mean of
GAUGES: Mapping[str, str] = {
    "engine": ENGINE,
    "sm": "DCGM_FI_PROF_SM_ACTIVE",
    "occupancy": "DCGM_FI_PROF_SM_OCCUPANCY",
    "tensor": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "fp64": "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    "fp32": "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "fp16": "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    "dram": "DCGM_FI_PROF_DRAM_ACTIVE",
    "pcie_rx": "DCGM_FI_PROF_PCIE_RX_BYTES",
    "pcie_tx": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "nvlink_rx": "DCGM_FI_PROF_NVLINK_RX_BYTES",
    "nvlink_tx": "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "pcie_gen": "DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
    "pcie_width": "DCGM_FI_DEV_PCIE_LINK_WIDTH",
    "sm_clock": "DCGM_FI_DEV_SM_CLOCK",
    "sm_clock_max": "DCGM_FI_DEV_MAX_SM_CLOCK",
    "memory_used": "DCGM_FI_DEV_FB_USED",
    "memory_free": "DCGM_FI_DEV_FB_FREE",
    "util": UTIL,
}
_REASON = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_{}_NS"
# value of `Means` -> counter of nanoseconds, of which it is the share of time
TIMES: Mapping[str, str] = {
    "hw_thermal": _REASON.format("HW_THERM_SLOWDOWN"),
    "sw_thermal": _REASON.format("SW_THERM_SLOWDOWN"),
    "power_brake": _REASON.format("HW_POWER_BRAKE_SLOWDOWN"),
    "power_cap": _REASON.format("SW_POWER_CAP"),
}
FIELDS = (*GAUGES.values(), *TIMES.values())
_LANE = 985e6  # bytes per second of a PCIe lane at generation 3, then double with each

PIPES = ("tensor", "fp64", "fp32", "fp16")


@dataclass(frozen=True)
class Means:
    """The means of a device over five minutes.

    + values: by the names of `GAUGES` and `TIMES`; one that has no samples is not in it
    + samples: share of the expected samples of the engine's activity (without it: of GPU_UTIL)
    + engine_variation: coefficient of variation of the engine's activity; None: no activity
    """

    values: Mapping[str, float]
    samples: float
    engine_variation: float | None = None

    def get(self, name: str) -> float | None:
        """A value; None: the GPU has none, or nobody collected it."""
        return self.values.get(name)

    @property
    def pipe(self) -> tuple[str, float]:
        """The busiest arithmetic pipe, and its activity; ("", 0) where none is known."""
        activities = [(self.values[name], name) for name in PIPES if name in self.values]
        return max(activities)[::-1] if activities else ("", 0.0)

    @property
    def memory_ratio(self) -> float | None:
        """Used device memory, as a share of what workloads can have."""
        used, free = self.get("memory_used"), self.get("memory_free")
        if used is None or free is None or used + free <= 0:
            return None
        return used / (used + free)

    @property
    def pcie_max(self) -> float | None:
        """What the PCIe link carries in one direction, in bytes per second, headers included."""
        gen, width = self.get("pcie_gen"), self.get("pcie_width")
        if gen is None or width is None or width <= 0:
            return None
        return width * _LANE * 2.0 ** (round(gen) - 3)


@dataclass(frozen=True)
class Samples:
    """All that was scraped of one device. + labels: of the newest series that names it"""

    fields: Mapping[str, Points]
    labels: Mapping[str, str]
    holders: frozenset[str]  # `namespace/pod` of each pod that its series name

    def at(self, end: float, interval_s: float) -> Means:
        """The means of the five minutes up to a moment.

        + end: unix seconds; interval_s: between two scrapes
        """
        inside = {
            name: {time: value for time, value in points.items() if end - MEAN_S < time <= end}
            for name, points in self.fields.items()
        }
        if is_profiling_dead(inside):
            inside = {name: points for name, points in inside.items() if "_PROF_" not in name}
        values = {
            key: statistics.fmean(points.values())
            for key, name in GAUGES.items()
            if (points := inside.get(name))
        }
        for key, name in TIMES.items():
            if (share := _share(inside.get(name, {}))) is not None:
                values[key] = share
        counted = inside.get(ENGINE) or inside.get(UTIL) or {}
        expected = max(1, round(MEAN_S / interval_s))
        return Means(
            values,
            min(1.0, len(counted) / expected),
            _variation(list(inside.get(ENGINE, {}).values())),
        )


def collect(series_list: Iterable[Series]) -> dict[Device, Samples]:
    """Samples by device. Pods that share a GPU repeat its samples: these are one."""
    fields: dict[Device, dict[str, Points]] = {}
    labels: dict[Device, tuple[float, Mapping[str, str]]] = {}
    holders: dict[Device, set[str]] = {}
    for series in series_list:
        points = known_points(series)
        if not points or not series.labels.get("UUID"):
            continue
        key = device(series.labels)
        merge(fields.setdefault(key, {}).setdefault(series.name, {}), points)
        newest = max(points)
        if key not in labels or newest > labels[key][0]:
            labels[key] = newest, series.labels
        if pod := series.labels.get("pod"):
            holders.setdefault(key, set()).add(f"{series.labels.get('namespace', '')}/{pod}")
    return {
        key: Samples(device_fields, labels[key][1], frozenset(holders.get(key, ())))
        for key, device_fields in fields.items()
    }


def _share(points: Points) -> float | None:
    """Share of time that a counter of nanoseconds grew by.

    One below half of what it was began again at 0; a smaller fall is a second exporter that lags.
    """
    times = sorted(points)
    if len(times) < 2:
        return None
    grown = 0.0
    for before, now in itertools.pairwise(times):
        grown += points[now] - (points[before] if points[now] >= points[before] / 2 else 0)
    return min(1.0, max(0.0, grown) / 1e9 / (times[-1] - times[0]))


def _variation(values: list[float]) -> float | None:
    if len(values) < 2 or not (mean := statistics.fmean(values)):
        return None
    return statistics.pstdev(values) / mean
