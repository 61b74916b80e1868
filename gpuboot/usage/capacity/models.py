"""How demand may go on: the week before again, or a week's pattern on a level that moves.

The models with a level need statsmodels, which is an extra of this package: without it the week
before again is all there is.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from gpuboot.usage.capacity.hourly import DAY, WEEK

Model = Callable[[Sequence[float], int], list[float]]

NAIVE = "seasonal-naive"
LEVEL = "week pattern + level"
TREND = "week pattern + trend"
_PATTERN_WEEKS = 8  # the pattern is the median of so many weeks at most: holidays fall out of it
MISSING = (
    "statsmodels is not installed, so only the last week is repeated: "
    "scripts/setup --forecast installs it (the extra `forecast` of this package)"
)


def models() -> dict[str, Model]:
    """What there is to choose from, the simplest first."""
    available: dict[str, Model] = {NAIVE: seasonal_naive}
    if find_spec("statsmodels"):
        available |= {LEVEL: level, TREND: trend}
    return available


def seasonal_naive(values: Sequence[float], hours: int) -> list[float]:
    """The last week, again and again. + values: a week at least"""
    week = values[-WEEK:]
    return [week[hour % WEEK] for hour in range(hours)]


def level(values: Sequence[float], hours: int) -> list[float]:
    """The week's pattern on a level that is as high as lately (simple exponential smoothing)."""
    return _on_pattern(values, hours, _smoothed)


def trend(values: Sequence[float], hours: int) -> list[float]:
    """The week's pattern on a level that goes on rising or falling (Holt's method)."""
    return _on_pattern(values, hours, _holt)


def _on_pattern(
    values: Sequence[float], hours: int, level_of: Callable[[list[float], int], list[float]]
) -> list[float]:
    """+ level_of: daily means without the pattern, number of days -> their continuation"""
    pattern = _pattern(values)
    flat = [value - pattern[hour % WEEK] for hour, value in enumerate(values, -len(values))]
    first = len(flat) % DAY
    daily = [statistics.fmean(flat[at : at + DAY]) for at in range(first, len(flat), DAY)]
    days = level_of(daily, math.ceil(hours / DAY))
    return [max(0.0, days[hour // DAY] + pattern[hour % WEEK]) for hour in range(hours)]


def _pattern(values: Sequence[float]) -> list[float]:
    """How each hour of the week differs from the week's mean; hour 0 follows the last value."""
    weeks = min(len(values) // WEEK, _PATTERN_WEEKS)
    differences = []
    for number in range(weeks):
        week = values[len(values) - (number + 1) * WEEK : len(values) - number * WEEK]
        mean = statistics.fmean(week)
        differences.append([value - mean for value in week])
    pattern = [statistics.median(hour) for hour in zip(*differences, strict=True)]
    mean = statistics.fmean(pattern)
    return [value - mean for value in pattern]


def _smoothed(daily: list[float], days: int) -> list[float]:
    from statsmodels.tsa.holtwinters import SimpleExpSmoothing

    return _continued(SimpleExpSmoothing(daily, initialization_method="estimated"), days)


def _holt(daily: list[float], days: int) -> list[float]:
    from statsmodels.tsa.holtwinters import Holt

    return _continued(Holt(daily, initialization_method="estimated"), days)


def _continued(smoothing: Any, days: int) -> list[float]:
    with warnings.catch_warnings():  # that an optimum lies at a bound says nothing to a reader
        warnings.simplefilter("ignore")
        return [float(value) for value in smoothing.fit().forecast(days)]
