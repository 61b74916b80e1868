"""Made series of demand whose truth is known: what a forecast must find again.

Each is a function of weeks and a seed that yields the truth and what was seen of it, by the hour.
The week is an office's: more by day, less by night and on weekends, and jobs that come and go.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

WEEK = 168
START = 1_767_571_200  # Monday, 2026-01-05 00:00 UTC


@dataclass(frozen=True)
class DemandSeries:
    """+ truth: without noise and outages; observed: as monitoring has it, None: a hole"""

    truth: tuple[float, ...]
    observed: tuple[float | None, ...]


def profile(hour: int) -> float:
    """The week's shape, in GPUs around 0: hours of the week from Monday 00:00."""
    day, of_day = divmod(hour % WEEK, 24)
    working = 8 <= of_day < 20
    return (6.0 if working else -2.0) if day < 5 else (-5.0 if working else -7.0)


def _noise(random_: random.Random, hours: int, spread: float) -> list[float]:
    """Jobs last for hours: what is too many now is too many in an hour."""
    values, value = [], 0.0
    for _ in range(hours):
        value = 0.9 * value + random_.gauss(0.0, spread * 0.436)  # stationary: spread
        values.append(value)
    return values


def make_series(
    level: Callable[[float], float],
    weeks: int = 26,
    seed: int = 1,
    spread: float = 2.5,
    season: float = 1.0,
    observed: Callable[[int, float], float | None] = lambda _, value: value,
) -> DemandSeries:
    """A series. + level: GPUs after so many weeks; season: how strong; seen: hour, value -> seen"""
    hours = range(weeks * WEEK)
    truth = tuple(max(0.0, level(hour / WEEK) + season * profile(hour)) for hour in hours)
    noise = _noise(random.Random(seed), len(truth), spread)
    values = (max(0.0, round(base + jitter)) for base, jitter in zip(truth, noise, strict=True))
    return DemandSeries(truth, tuple(observed(hour, value) for hour, value in enumerate(values)))


def season(weeks: int = 26, seed: int = 1) -> DemandSeries:
    """The same week again and again."""
    return make_series(lambda _: 40.0, weeks, seed)


def trend(weeks: int = 26, seed: int = 1) -> DemandSeries:
    """One GPU more each week."""
    return make_series(lambda week: 30.0 + week, weeks, seed)


def step(weeks: int = 26, seed: int = 1) -> DemandSeries:
    """A team of 20 GPUs arrives six weeks before the end."""
    return make_series(lambda week: 30.0 + (20.0 if week >= weeks - 6 else 0.0), weeks, seed)


def outage(weeks: int = 26, seed: int = 1) -> DemandSeries:
    """Two days without a job, ten days before the end: the cluster was down."""
    first = (weeks - 2) * WEEK + 96
    return make_series(
        lambda week: 30.0 + week,
        weeks,
        seed,
        observed=lambda hour, value: 0.0 if first <= hour < first + 48 else value,
    )


def holidays(weeks: int = 26, seed: int = 1) -> DemandSeries:
    """The last week is a holiday: a third of the demand."""
    first = (weeks - 1) * WEEK
    return make_series(
        lambda _: 40.0,
        weeks,
        seed,
        observed=lambda hour, value: round(value / 3) if hour >= first else value,
    )


def flat(weeks: int = 26, seed: int = 1) -> DemandSeries:
    """No trend and no season."""
    return make_series(lambda _: 40.0, weeks, seed, season=0.0)


def walk(weeks: int = 26, seed: int = 1) -> DemandSeries:
    """Demand that wanders: nothing can be known of it but where it is."""
    random_, levels, value = random.Random(seed + 1000), [], 60.0
    for _ in range(weeks + 1):
        levels.append(value)
        value += random_.gauss(0.0, 5.0)
    return make_series(lambda week: levels[int(week)], weeks, seed)


KINDS: dict[str, Callable[[int, int], DemandSeries]] = {
    "season": season,
    "trend": trend,
    "step": step,
    "outage": outage,
    "holidays": holidays,
    "flat": flat,
    "walk": walk,
}
