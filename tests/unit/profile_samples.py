"""Samples of one GPU as Prometheus has them, for the tests of `gpuboot profile`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboot.config.settings.profile import thresholds
from gpuboot.query.profile.counters import GAUGES, TIMES, collect
from gpuboot.query.profile.window import Profile as DeviceProfile
from gpuboot.query.profile.window import Span, profile
from gpuboot.verify.prometheus import Series

LIMITS = thresholds()
NOW = 100_000.0
H100 = "NVIDIA H100 80GB HBM3"
PCIE_5 = {"pcie_gen": 5, "pcie_width": 16}  # 63 GB/s in each direction
TRAINS = {
    "engine": 0.95, "sm": 0.85, "occupancy": 0.4, "tensor": 0.55, "fp64": 0.0, "fp32": 0.1,
    "fp16": 0.0, "dram": 0.4, "memory_used": 70000, "memory_free": 10000,
    "pcie_rx": 1e9, "pcie_tx": 1e9, "nvlink_rx": 5e9, "nvlink_tx": 5e9, **PCIE_5,
}  # fmt: skip
NO_NVLINK = {"nvlink_rx": None, "nvlink_tx": None}
FREE = {"memory_used": 10, "memory_free": 80000}
ZEROS = {"engine": 0.0, "sm": 0.0, "tensor": 0.0, "fp32": 0.0, "dram": 0.0}
IDLE = {**ZEROS, "util": 0.0}
UNITS = {"util": 90.0, "sm_clock": 1755.0, "sm_clock_max": 1980.0}


def scraped(
    uuid: str = "GPU-a",
    start_s: float = 1200,
    end_s: float = 4,
    every: float = 15,
    phases: Mapping[float, Mapping[str, float]] | None = None,
    **labels: str,
) -> list[dict[str, Any]]:
    """Series of one GPU. + phases: from so many seconds ago on, other values"""
    count = int((start_s - end_s) // every) + 1
    times = [NOW - end_s - every * step for step in reversed(range(count))]
    values: dict[str, list[list[Any]]] = {}
    for time in times:
        now: dict[str, float] = {**TRAINS, **UNITS}
        for since, phase_values in sorted((phases or {}).items(), reverse=True):
            if NOW - time <= since:
                now |= phase_values
        for key, value in now.items():
            values.setdefault(GAUGES[key], []).append([time, str(value)])
    series_labels = {"UUID": uuid, "gpu": "0", "node": "gpu1", "modelName": H100, **labels}
    return [
        {"metric": {"__name__": name, **series_labels}, "values": rows}
        for name, rows in values.items()
    ]


def counter(key: str, points: Mapping[float, float], **labels: str) -> dict[str, Any]:
    """A counter of nanoseconds. + points: seconds ago -> value"""
    rows = [[NOW - ago, str(value)] for ago, value in sorted(points.items(), reverse=True)]
    series_labels = {"__name__": TIMES[key], "UUID": "GPU-a", "gpu": "0", "node": "gpu1", **labels}
    return {"metric": series_labels, "values": rows}


def series(rows: list[dict[str, Any]]) -> list[Series]:
    return [
        Series(
            row["metric"]["__name__"],
            row["metric"],
            tuple((float(time), float(value)) for time, value in row["values"]),
        )
        for row in rows
    ]


def profile_single(rows: list[dict[str, Any]], window_s: float = 900) -> DeviceProfile:
    ((device, samples),) = collect(series(rows)).items()
    return profile(device, samples, Span(NOW, window_s, 15), LIMITS, {})
