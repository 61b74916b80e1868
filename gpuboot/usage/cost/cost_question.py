"""What is asked for a report: times as a person gives them, until the settings are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gpuboot.config.settings import Settings
from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.cost.period import Period, check_kept, days_fit, period, time_zone
from gpuboot.usage.cost.queries import queries
from gpuboot.usage.ranges import RangeQuestion
from gpuboot.usage.series import History, Window

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
