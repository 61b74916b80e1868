"""How good forecasts would have been: each model forecasts weeks that are known already."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuboot.usage.capacity.hourly import DAY, WEEK
from gpuboot.usage.capacity.models import NAIVE, Model

_LEAST_TRAINING = 2 * WEEK
_MOST_WEEKS = 4
_ORIGINS = 8
# How fast errors grow with the distance: weeks ** growth. 0.5: a random walk, 1: a wrong slope.
_GROWTH = (0.25, 1.0)
LOW, MIDDLE, HIGH = 0.10, 0.50, 0.90
Offsets = tuple[float, float, float]  # what is to be added for P10, P50 and P90


@dataclass(frozen=True)
class Errors:
    """What a model got wrong in the backtest.

    + mean: mean absolute error by the hour, in GPUs
    + growth: the error grows with the number of weeks to the power of this
    + hours, peaks: actual minus forecast, of hours and of the P95 of weeks, as if one week ahead
    """

    mean: float
    growth: float
    hours: tuple[float, ...]
    peaks: tuple[float, ...]

    def of_hour(self, week: int) -> Offsets:
        """How much an hour `week` weeks ahead (1: the next) may differ from its forecast."""
        return _offsets(self.hours, week**self.growth)

    def of_peak(self, week: int) -> Offsets:
        """How much the P95 of a week may differ; its middle is what a smooth forecast lacks."""
        return _offsets(self.peaks, week**self.growth)


def _offsets(errors: Sequence[float], wider: float) -> Offsets:
    low, middle, high = (_at(errors, share) for share in (LOW, MIDDLE, HIGH))
    return middle + (low - middle) * wider, middle, middle + (high - middle) * wider


@dataclass(frozen=True)
class Backtest:
    """+ origins: moments at which was forecast; weeks: how far; errors: by model; best: its name"""

    origins: int
    weeks: int
    errors: Mapping[str, Errors]

    @property
    def best(self) -> str:
        """The model with the least error. A model that does not beat seasonal-naive is not used."""
        return min(self.errors, key=lambda name: (self.errors[name].mean, name != NAIVE))

    @property
    def gain(self) -> float:
        """The share by which the best model's error is below that of seasonal-naive, 0 to 1."""
        naive = self.errors[NAIVE].mean
        return 1 - self.errors[self.best].mean / naive if naive else 0.0


def backtest(values: Sequence[float], models: Mapping[str, Model]) -> Backtest:
    """Compare models by their forecasts of known weeks: each knows only what came before.

    + values: hourly, without holes, three weeks at least
    """
    weeks = max(1, min(_MOST_WEEKS, (len(values) - _LEAST_TRAINING) // (2 * WEEK)))
    origins = _origins(len(values), weeks)
    errors = {name: _errors(values, model, origins, weeks) for name, model in models.items()}
    return Backtest(len(origins), weeks, errors)


def _origins(hours: int, weeks: int) -> list[int]:
    """Up to eight moments in the younger half, whole days from the end, and with room to go on."""
    last = hours - weeks * WEEK
    first = min(last, max(_LEAST_TRAINING, hours // 2))
    steps = min(_ORIGINS - 1, (last - first) // DAY)
    days = sorted({round((last - first) / DAY * step / max(1, steps)) for step in range(steps + 1)})
    return [last - day * DAY for day in reversed(days) if last - day * DAY >= _LEAST_TRAINING]


def _errors(values: Sequence[float], model: Model, origins: list[int], weeks: int) -> Errors:
    by_week: list[list[float]] = [[] for _ in range(weeks)]
    peaks: list[list[float]] = [[] for _ in range(weeks)]
    for origin in origins:
        forecast = model(values[:origin], weeks * WEEK)
        for week in range(weeks):
            begin, end = week * WEEK, (week + 1) * WEEK
            actual = values[origin + begin : origin + end]
            predicted = forecast[begin:end]
            by_week[week] += [
                value - estimate for value, estimate in zip(actual, predicted, strict=True)
            ]
            peaks[week].append(quantile(actual, 0.95) - quantile(predicted, 0.95))
    spreads = [statistics.fmean(map(abs, errors)) for errors in by_week]
    growth = _growth(spreads)
    return Errors(
        statistics.fmean(spreads),
        growth,
        tuple(sorted(_as_of_next_week(by_week, growth))),
        tuple(sorted(_as_of_next_week(peaks, growth))),
    )


def _as_of_next_week(errors: list[list[float]], growth: float) -> list[float]:
    """The errors of all weeks scaled to those of the next; their median stays."""
    middle = statistics.median(value for week in errors for value in week)
    return [
        middle + (value - middle) / week_number**growth
        for week_number, week in enumerate(errors, 1)
        for value in week
    ]


def _growth(spreads: list[float]) -> float:
    """The exponent by which errors grow from the first week on; a random walk's for one week."""
    if len(spreads) < 2 or min(spreads) <= 0:
        return 0.5
    exponent = math.log(spreads[-1] / spreads[0]) / math.log(len(spreads))
    return min(max(exponent, _GROWTH[0]), _GROWTH[1])


def quantile(values: Sequence[float], share: float) -> float:
    """The value at a share, linear between the nearest two. + values: not empty; share: 0 to 1"""
    return _at(sorted(values), share)


def _at(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
