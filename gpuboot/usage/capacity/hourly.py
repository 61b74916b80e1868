"""Demand by the hour, and whether there is enough of it to tell the future from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

HOUR = 3600
DAY = 24
WEEK = 168
LEAST_WEEKS = 3.0
GOOD_WEEKS = 4.0
MOST_HOLES = 0.20


@dataclass(frozen=True)
class Hourly:
    """A value for each hour.

    + start: unix seconds of the first hour
    + values: None: nothing is known of that hour. The first and the last are known
    """

    start: int
    values: tuple[float | None, ...]

    @property
    def weeks(self) -> float:
        return len(self.values) / WEEK

    @property
    def end(self) -> int:
        """Unix seconds at which the last hour ends."""
        return self.start + len(self.values) * HOUR

    @property
    def holes(self) -> float:
        """Share of hours that nothing is known of, 0 to 1."""
        return sum(value is None for value in self.values) / max(1, len(self.values))

    def at(self, moment: int) -> float | None:
        """The value of the hour that begins then."""
        index = (moment - self.start) // HOUR
        return self.values[index] if 0 <= index < len(self.values) else None


def hourly(points: Iterable[tuple[float, float]]) -> Hourly:
    """Means by the hour. + points: unix seconds and value, in any order, at any distance"""
    hours: dict[int, list[float]] = {}
    for moment, value in points:
        if math.isfinite(value):
            hours.setdefault(int(moment // HOUR), []).append(value)
    if not hours:
        return Hourly(0, ())
    first, last = min(hours), max(hours)
    means = (
        statistics.fmean(hours[hour]) if hour in hours else None for hour in range(first, last + 1)
    )
    return Hourly(first * HOUR, tuple(means))


def too_little(history: Hourly) -> str:
    """Why no forecast is made of this history, and what it takes; "" for enough."""
    if not history.values:
        return "there is no history at all"
    needs = f"{LEAST_WEEKS:.0f} weeks are needed, {GOOD_WEEKS:.0f} recommended"
    if history.weeks < LEAST_WEEKS:
        return f"{length(len(history.values))} of history; {needs}: demand has a weekly pattern"
    if history.holes > MOST_HOLES:
        missing = sum(value is None for value in history.values)
        return (
            f"{history.holes:.1%} of the hours are missing ({missing} of {len(history.values)}, "
            f"the longest hole {length(_longest_hole(history))}); {MOST_HOLES:.0%} may be"
        )
    return ""


def length(hours: int) -> str:
    """A time in words: hours, days or weeks."""
    if hours < 2 * DAY:
        return f"{hours} hour{'s' * (hours != 1)}"
    if hours < 4 * WEEK:
        return f"{hours / DAY:.1f} days"
    return f"{hours / WEEK:.1f} weeks"


def _longest_hole(history: Hourly) -> int:
    longest = run = 0
    for value in history.values:
        run = run + 1 if value is None else 0
        longest = max(longest, run)
    return longest


def filled(history: Hourly) -> list[float]:
    """The values with holes filled from the same hour of the nearest week that has one."""
    values = history.values
    mean = statistics.fmean(value for value in values if value is not None)
    return [
        _of_nearest_week(values, hour, mean) if value is None else value
        for hour, value in enumerate(values)
    ]


def _of_nearest_week(values: tuple[float | None, ...], hour: int, default: float) -> float:
    """+ default: where no week has this hour"""
    near = sorted(range(hour % WEEK, len(values), WEEK), key=lambda index: abs(index - hour))
    return next((value for index in near if (value := values[index]) is not None), default)
