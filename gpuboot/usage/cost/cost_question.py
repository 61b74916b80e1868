"""What is asked for a report: times as a person gives them, and the questions to Prometheus.

Each value is the sum over the minutes of a step: GPU minutes, units of a resource, watt minutes.
Minutes are counted one by one. A mean times the length would know only the samples that are there,
and would bill a pod of one hour for the whole day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.promql import (
    BLANK_NS,
    DEVICE,
    RESOURCES,
    closed_nodes,
    shown_by_exporter,
)
from gpuboot.monitoring.rules.recording_use import held_power, part_of_device
from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.cost.period import Period, check_kept, days_fit, period, time_zone
from gpuboot.usage.ranges import RangeQuestion
from gpuboot.usage.series import History, Window

RESOLUTION_S = 60
_CARD = "node, UUID, modelName"
_ALLOCATABLE = f"max by (node, resource) (kube_node_status_allocatable{{{RESOURCES}}})"
_FREE_DEVICES = (
    f"clamp_min({_ALLOCATABLE} - on (node, resource) ("
    "sum by (node, resource) (namespace_pod:gpu_requested:sum)"
    f" or 0 * {_ALLOCATABLE}), 0)"
)
_CLOSED = " or ".join(closed_nodes().values())
_POD_ENGINE = 'gpu:engine_active:avg5m{pod!=""}'
_PER_DEVICE = f"max by (namespace, pod, {DEVICE}, modelName, GPU_I_PROFILE)"
_ACTIVITY = f"{_PER_DEVICE} ({_POD_ENGINE})"
_SM_ACTIVITY = f'{_PER_DEVICE} (gpu:sm_active:avg5m{{pod!=""}})'
# pods that share a GPU all show the whole GPU's activity: each gets its part of it
_PART = f"on (namespace, pod, {DEVICE}) group_left () {part_of_device()}"
_BY_POD = "sum by (namespace, pod, node, modelName, GPU_I_PROFILE)"
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"

EACH_MINUTE = {
    "held": "namespace_pod:gpu_requested:sum",
    "capacity": f"max by (node, resource) (kube_node_status_capacity{{{RESOURCES}}})",
    "free": f"{_FREE_DEVICES} unless on (node) ({_CLOSED})",
    "closed": f"{_FREE_DEVICES} and on (node) ({_CLOSED})",
    "reported": "group by (node) (kube_node_info)",
    "promised": "max by (node) (node:gpu_expected:count)",
    "promised_minutes": "group by (node) (node:gpu_expected:count)",
    "cards": f"count by (node, modelName) ({shown_by_exporter(_CARD)})",
    "devices": "count by (node, modelName, GPU_I_PROFILE) ("
    f"{shown_by_exporter(f'{DEVICE}, modelName, GPU_I_PROFILE')})",
    "seen": f"group by (node) ({shown_by_exporter(_CARD)})",
    "used": f"{_BY_POD} ({_ACTIVITY} * {_PART})",
    "sm": f"{_BY_POD} ({_SM_ACTIVITY} * {_PART})",
    "measured": f"{_BY_POD} ((0 * {_ACTIVITY} + 1) * {_PART})",
    "power_pod": held_power("namespace, pod, node"),
    "power_node": "node:gpu_power:sum",
    "teams": 'max by (namespace, label_team) (kube_namespace_labels{label_team!=""})',
}


def queries(step: int) -> dict[str, str]:
    """Name -> PromQL, to be evaluated at the end of each step.

    + step: length of a step in seconds, whole minutes

    `energy` is in kWh, by the GPUs' own counters (mJ, which begin anew with the driver).
    """
    # one second less: Prometheus before 3.0 counts both ends of a window
    window = f"[{step - 1}s:{RESOLUTION_S}s]"
    counters = f"max by (node, UUID) ({_ENERGY} < {BLANK_NS})"
    return {
        **{name: f"sum_over_time(({expr}){window})" for name, expr in EACH_MINUTE.items()},
        "energy": f"sum by (node) (increase(({counters}){window})) / 3.6e9",
    }


DEFAULT_ZONE = "UTC"
_PIECE_S = 86400  # what one request asks for


@dataclass(frozen=True)
class CostQuestion:
    """Times as `gpuboot.usage.cost.period.period` takes them.

    + now: unix seconds
    """

    since: str
    until: str
    month: str
    now: int

    topic: Literal["cost"] = "cost"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def within(self, settings: Settings) -> RangeQuestion:
        """The queries and their window. Raises `CostError`."""
        period = self.period({"time_zone": settings.cost.time_zone})
        check_kept(period, settings.monitoring.retention, self.now)
        return ranges(period).within(settings)

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        return json.dumps({"error": reason})

    def period(self, cost: Mapping[str, Any]) -> Period:
        """The time that is meant. + cost: the settings `cost`. Raises `CostError`."""
        zone = time_zone(cost.get("time_zone", DEFAULT_ZONE))
        return period(self.since, self.until, self.month, zone, self.now)

    def period_of(self, history: History) -> Period:
        """The same, in the steps of recorded answers; all of these where no time was given.

        Raises `CostError` where they do not hold it.
        """
        recorded, cost = history.window, history.metadata.get("cost", {})
        if self.since or self.until or self.month:
            period = self.period(cost)
        else:
            period = Period(recorded, time_zone(cost.get("time_zone", DEFAULT_ZONE)))
        window = period.window
        if not (recorded.start <= window.start and window.end <= recorded.end):
            full_period = Period(recorded, period.zone)
            raise CostError(
                f"{period.format_moment(window.start)} to {period.format_moment(window.end)} is "
                "not all in the recorded answers",
                f"a time from {full_period.format_moment(recorded.start)} to "
                f"{full_period.format_moment(recorded.end)}",
            )
        return days_fit(window.start, window.end, recorded.step, period.zone)


def ranges(period: Period) -> RangeQuestion:
    """The queries for a time, a day at once."""
    window: Window = period.window
    return RangeQuestion(queries(window.step), window, _PIECE_S // window.step)
