"""The newest samples of some GPUs, and what they amount to: a number, or a reason for none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuboot.monitoring.rules.promql import ENGINE, UTIL
from gpuboot.verify.prometheus import BLANK_VALUE, Series

Device = tuple[str, str]  # UUID, MIG instance ("" for a whole GPU)
Points = dict[float, float]  # unix seconds -> value

USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
_BLANK_NS = 9e18  # DCGM's "no value" of a whole number: nanoseconds may well be above `BLANK_VALUE`
_BEYOND_UTIL = 101  # percent: DCGM now and then tells of millions (NVIDIA/DCGM issue 199)
_BUSY_UTIL = 5


@dataclass(frozen=True)
class Value:
    """A number, or why there is none.

    + value: 0 to 1; None: unknown, and then `reason` says why
    + age_s: age of the oldest of the GPUs' newest samples
    + samples: how many went into it
    + source: the series and what was done with it, as PromQL
    """

    value: float | None
    age_s: float | None = None
    samples: int = 0
    source: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError("unknown, and no reason")


@dataclass(frozen=True)
class DeviceSamples:
    """The samples of the devices at one moment."""

    devices: Mapping[Device, Mapping[str, Points]]
    label: str
    now: float
    stale_s: float
    window_s: float

    def has(self, name: str) -> bool:
        return any(name in fields for fields in self.devices.values())

    def mean(self, name: str, missing: str, scale: float = 1.0) -> Value:
        """The mean of the devices' means over the window; unknown if one of them has none."""
        if not self.has(name):
            return Value(None, reason=missing)
        if stale_reason := self._stale(name):
            return Value(None, self._age(name), reason=stale_reason)
        points = [self._in_window(fields[name]) for fields in self.devices.values()]
        total = sum(sum(window.values()) / len(window) for window in points) * scale
        source = f"avg(avg_over_time({name}{{{self.label}}}[{duration(self.window_s)}]))"
        source += " / 100" * (scale != 1.0)
        samples = sum(map(len, points))
        # of a MIG instance SM_ACTIVE may be above 1 (NVIDIA/DCGM issue 152)
        return Value(min(1.0, total / len(points)), self._age(name), samples, source)

    def memory(self) -> Value:
        """Used memory as a share of what workloads can have, by the newest samples."""
        for name in (USED, FREE):
            if not self.has(name):
                return Value(None, reason=f"no {name}")
            if stale_reason := self._stale(name):
                return Value(None, self._age(name), reason=stale_reason)
        used, free = (
            sum(fields[name][max(fields[name])] for fields in self.devices.values())
            for name in (USED, FREE)
        )
        if used + free <= 0:
            return Value(None, reason=f"{USED} and {FREE} are both 0")
        sums = [f"sum({name}{{{self.label}}})" for name in (USED, FREE)]
        source = f"{sums[0]} / ({sums[0]} + {sums[1]})"
        return Value(used / (used + free), self._age(USED), len(self.devices), source)

    def dead_profiling(self) -> str:
        """Why the profiling fields of a device are no values; "" where they may be."""
        for key, fields in sorted(self.devices.items()):
            if is_profiling_dead({name: self._in_window(fields[name]) for name in fields}):
                return (
                    f"{ENGINE} of {device_name(key)} stays at 0 while kernels run: restart DCGM "
                    "(see the alert GPUMetricsFrozen)"
                )
        return ""

    def _in_window(self, points: Points) -> Points:
        return {time: value for time, value in points.items() if self.now - time <= self.window_s}

    def _age(self, name: str) -> float:
        """Age in seconds of the newest sample of the device that has been silent for longest."""
        newest = [max(fields[name]) for fields in self.devices.values() if name in fields]
        return round(max(0.0, self.now - min(newest)), 1)

    def _stale(self, name: str) -> str:
        old = []
        for key, fields in sorted(self.devices.items()):
            label = device_name(key)
            if name not in fields:
                old.append(f"{label} has no {name}")
            elif (age := self.now - max(fields[name])) > self.stale_s:
                old.append(f"{label}: the newest sample of {name} is {age:.0f} s old")
        if not old:
            return ""
        count = f"{len(old)} of {len(self.devices)} GPUs: " if len(self.devices) > 1 else ""
        return f"{count}{'; '.join(old[:4])}{' …' * (len(old) > 4)}"


def selector(matchers: Mapping[str, str], operator: str = "=") -> str:
    """What stands between the braces of a PromQL selector."""
    return ",".join(
        f"{label}{operator}{json.dumps(value, ensure_ascii=False)}"
        for label, value in matchers.items()
    )


def devices(series_list: Iterable[Series]) -> dict[Device, dict[str, Points]]:
    """Samples by device and field. Pods that share a GPU repeat its samples: these are one."""
    by_device: dict[Device, dict[str, Points]] = {}
    for series in series_list:
        points = known_points(series)
        if points and series.labels.get("UUID"):
            fields = by_device.setdefault(device(series.labels), {})
            merge(fields.setdefault(series.name, {}), points)
    return by_device


def known_points(series: Series) -> Points:
    """The samples that are values: neither DCGM's marks for none nor beyond what there can be."""
    limit = _BLANK_NS if series.name.endswith("_NS") else BLANK_VALUE
    if series.name == UTIL:
        limit = _BEYOND_UTIL
    return {time: value for time, value in series.points if abs(value) < limit}


def is_profiling_dead(fields: Mapping[str, Points]) -> bool:
    """Whether the engine's activity stays at 0 although kernels run, as GPU_UTIL tells.

    DCGM's profiling then gives nothing else until DCGM restarts (NVIDIA/DCGM issue 303).
    """
    engine, util = fields.get(ENGINE), fields.get(UTIL)
    if not engine or not util or any(engine.values()):
        return False
    return sum(util.values()) / len(util) > _BUSY_UTIL


def merge(points: Points, added: Points) -> None:
    """Add another series of the same device and field.

    Of a shared GPU, FB_USED and GPU_UTIL have the whole's value and each pod's own: it has the
    largest (dcgm-exporter 4.8.4, internal/pkg/transformation/kubernetes.go).
    """
    for time, value in added.items():
        points[time] = max(value, points.get(time, value))


def device(labels: Mapping[str, str]) -> Device:
    """What a series is about."""
    return labels.get("UUID", ""), labels.get("GPU_I_ID", "")


def newest(fields: Mapping[str, Points]) -> float:
    """When anything of a device was seen last."""
    return max(max(points) for points in fields.values())


def duration(seconds: float) -> str:
    """Seconds as PromQL writes them."""
    rounded = round(seconds)
    return f"{rounded // 60}m" if rounded % 60 == 0 else f"{rounded}s"


def device_name(key: Device) -> str:
    """A device for people: its UUID, and `/` and the instance's number under MIG."""
    return "/".join(filter(None, key))
