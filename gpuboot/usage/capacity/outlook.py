"""When GPUs run out: the forecast as bands, and the need that follows from it.

    need = ceil(P95 of a week's demand / target use) + GPUs under repair (P95) + the largest gang

A week of which the need is more than what is installed is one in which somebody waits for too long.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpuboot.usage.capacity.backtest import Backtest, Errors, Offsets, backtest, quantile
from gpuboot.usage.capacity.hourly import GOOD_WEEKS, WEEK, Hourly, filled, length, too_little
from gpuboot.usage.capacity.models import MISSING, NAIVE, Model

MOST_WEEKS = 52
Verdict = Literal["enough", "order soon", "order now", "unknown"]


@dataclass(frozen=True)
class Supply:
    """What there is, and what people say about it.

    + installed: GPUs of the pool; None where nobody says it
    + unavailable: GPUs that were broken, cordoned or on nodes that were not ready: P95 by the hour
    + gang: GPUs of the largest job that must run at once
    + target: share of the GPUs that demand may take, 0 to 1
    + lead_weeks: from ordering GPUs until they work
    """

    installed: int | None = None
    unavailable: float = 0.0
    gang: int = 0
    target: float = 0.85
    lead_weeks: int = 12

    def need(self, peak: float) -> int:
        """GPUs that it takes. + peak: P95 of the demand"""
        # a tenth of a millionth of a GPU is none: 34 / 0.85 is a little more than 40
        exact = peak / self.target - 1e-7
        return max(0, math.ceil(exact)) + math.ceil(self.unavailable) + self.gang


@dataclass(frozen=True)
class Band:
    """P10, P50 and P90 of something."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class WeekForecast:
    """A week to come. + week: 1: the next; demand: mean by the hour; peak: P95; need: GPUs"""

    week: int
    demand: Band
    peak: Band
    need: Band


@dataclass(frozen=True)
class Exhausted:
    """The first week of which the need is more than is installed; 0: it is now; None: none seen.

    + early, middle, late: if demand goes as P90, P50, P10 of the forecast
    """

    early: int | None
    middle: int | None
    late: int | None


@dataclass(frozen=True)
class Outlook:
    """What is known of a pool's future.

    + refusal: why there is no forecast; "" where there is one. Then the rest is empty
    + model: the one that the forecast is made with
    + hours: the forecast by the hour, P10, P50 and P90
    + peak_now: P95 of the demand of the last four weeks, or of all there is; need_now: by that
    """

    history: Hourly
    supply: Supply
    refusal: str = ""
    tested: Backtest | None = None
    model: str = ""
    hours: tuple[Band, ...] = ()
    weeks: tuple[WeekForecast, ...] = ()
    peak_now: float = 0.0
    need_now: int = 0
    exhausted: Exhausted | None = None
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What to do: order where P90 (soon) or P50 (now) runs out before new GPUs can be there."""
        if self.exhausted is None:
            return "unknown"
        lead = self.supply.lead_weeks
        if self.exhausted.middle is not None and self.exhausted.middle <= lead:
            return "order now"
        if self.exhausted.early is not None and self.exhausted.early <= lead:
            return "order soon"
        return "enough" if len(self.weeks) >= lead else "unknown"


def outlook(history: Hourly, supply: Supply, models: Mapping[str, Model]) -> Outlook:
    """The forecast, by the model that was best in the backtest.

    It reaches no further ahead than the history reaches back, and a year at most.
    """
    if refusal := too_little(history):
        return Outlook(history, supply, refusal)
    values = filled(history)
    tested = backtest(values, models)
    model, errors = tested.best, tested.errors[tested.best]
    weeks = min(MOST_WEEKS, len(values) // WEEK)
    forecast = models[model](values, weeks * WEEK)
    week_forecasts = tuple(
        _week_forecast(forecast, errors, supply, week) for week in range(1, weeks + 1)
    )
    offsets = [errors.of_hour(week) for week in range(1, weeks + 1)]
    peak_now = quantile(values[-4 * WEEK :], 0.95)
    need_now = supply.need(peak_now)
    return Outlook(
        history,
        supply,
        tested=tested,
        model=model,
        hours=tuple(_band(value, offsets[hour // WEEK]) for hour, value in enumerate(forecast)),
        weeks=week_forecasts,
        peak_now=peak_now,
        need_now=need_now,
        exhausted=_exhausted(week_forecasts, need_now, supply.installed),
        notes=tuple(_notes(history, tested, weeks, supply)),
    )


def _band(value: float, offsets: Offsets) -> Band:
    low, middle, high = (max(0.0, value + offset) for offset in offsets)
    return Band(low, middle, high)


def _week_forecast(
    forecast: Sequence[float], errors: Errors, supply: Supply, week: int
) -> WeekForecast:
    hours = forecast[(week - 1) * WEEK : week * WEEK]
    peak = _band(quantile(hours, 0.95), errors.of_peak(week))
    need = Band(*(supply.need(value) for value in (peak.low, peak.middle, peak.high)))
    return WeekForecast(week, _band(statistics.fmean(hours), errors.of_hour(week)), peak, need)


def _exhausted(
    week_forecasts: Sequence[WeekForecast], need_now: int, installed: int | None
) -> Exhausted | None:
    """The weeks in which GPUs run out; None where the number of installed GPUs is not known."""
    if installed is None:
        return None
    if need_now > installed:
        return Exhausted(0, 0, 0)

    def first(needs: Sequence[float]) -> int | None:
        return next((week for week, need in enumerate(needs, 1) if need > installed), None)

    return Exhausted(
        first([forecast.need.high for forecast in week_forecasts]),
        first([forecast.need.middle for forecast in week_forecasts]),
        first([forecast.need.low for forecast in week_forecasts]),
    )


def _notes(history: Hourly, tested: Backtest, weeks: int, supply: Supply) -> list[str]:
    """What a reader should know about the numbers."""
    notes = []
    if history.weeks < GOOD_WEEKS:
        notes.append(f"only {length(len(history.values))} of history: 4 weeks and more tell more")
    if NAIVE in tested.errors and len(tested.errors) == 1:
        notes.append(MISSING)
    elif tested.best == NAIVE:
        notes.append("no model beat seasonal-naive in the backtest, so the last week is repeated")
    if weeks < supply.lead_weeks:
        notes.append(
            f"the lead time ({supply.lead_weeks} weeks) reaches further ahead than the history "
            f"reaches back: a forecast is made for {weeks} weeks"
        )
    return notes
