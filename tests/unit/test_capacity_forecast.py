"""Forecasts of series whose truth is known, and of two real clusters."""

from __future__ import annotations

import csv
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from gpuboot.usage.capacity.hourly import WEEK, Hourly, hourly
from gpuboot.usage.capacity.models import LEVEL, NAIVE, TREND, models
from gpuboot.usage.capacity.outlook import Outlook, Supply, outlook
from tests.unit.demand_series import KINDS, START, DemandSeries

TRACES = Path(__file__).parent / "demand_traces"
HELD_OUT_WEEKS = 4  # weeks that the forecast does not see


@cache
def forecast(kind: str, seed: int, weeks: int = 26) -> tuple[DemandSeries, Outlook]:
    """The whole series, and the forecast of its last weeks."""
    series = KINDS[kind](weeks, seed)
    observed = series.observed[: (weeks - HELD_OUT_WEEKS) * WEEK]
    return series, outlook(Hourly(START, observed), Supply(installed=80), models())


def missed(series: DemandSeries, prediction: Outlook) -> float:
    """Mean absolute error of P50 against the truth, in GPUs."""
    truth = series.truth[-HELD_OUT_WEEKS * WEEK :]
    pairs = zip(truth, prediction.hours[: len(truth)], strict=True)
    return sum(abs(value - band.middle) for value, band in pairs) / len(truth)


def test_statsmodels_is_here() -> None:
    assert set(models()) == {NAIVE, LEVEL, TREND}, "run scripts/setup"


def test_a_trend_is_gone_on_with() -> None:
    """Of ten weeks, which is quick; more of it below."""
    series, prediction = forecast("trend", 1, weeks=14)
    assert prediction.model == TREND
    assert prediction.tested is not None
    assert prediction.tested.gain > 0.05
    assert missed(series, prediction) < 2.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "max_error"),
    # GPUs of some 40: what the mean of P50 may differ from the truth
    [("season", 1.0), ("flat", 1.0), ("trend", 1.5), ("step", 3.0), ("walk", 12.0)],
)
def test_the_truth_is_found_again(kind: str, max_error: float) -> None:
    errors = []
    for seed in (1, 2, 3):
        series, prediction = forecast(kind, seed)
        assert prediction.tested is not None
        assert prediction.tested.gain >= 0  # never worse than seasonal-naive where both are tested
        errors.append(missed(series, prediction))
    assert sum(errors) / 3 < max_error, errors


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_week_in_which_gpus_run_out_lies_in_the_band(seed: int) -> None:
    """One GPU more each week, and room for 12 more with a target of 0.85: ten weeks."""
    _, prediction = forecast("trend", seed)
    repeated = outlook(prediction.history, Supply(installed=prediction.need_now + 12), models())
    assert repeated.exhausted is not None
    early, middle, late = (
        repeated.exhausted.early,
        repeated.exhausted.middle,
        repeated.exhausted.late,
    )
    assert early is not None
    assert middle is not None
    assert early <= 11
    assert late is None or late >= 9
    assert abs(middle - 10) <= 5, repeated.exhausted


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["season", "flat", "trend"])
def test_bands_hold_what_they_promise(kind: str) -> None:
    """Of what came, nine of ten lie below P90 and one of ten below P10."""
    below_high = below_low = hours = 0
    for seed in range(1, 6):
        series, prediction = forecast(kind, seed)
        for observed, band in zip(
            series.observed[-HELD_OUT_WEEKS * WEEK :], prediction.hours, strict=False
        ):
            assert observed is not None
            below_high += observed <= band.high
            below_low += observed < band.low
            hours += 1
    assert 0.84 <= below_high / hours <= 0.98
    assert below_low / hours <= 0.16


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "weeks"), [("outage", 26), ("holidays", 26)])
def test_days_without_jobs_do_not_become_the_future(kind: str, weeks: int) -> None:
    """The forecast is made just after them, of weeks as they were before."""
    series = KINDS[kind](weeks, 1)
    prediction = outlook(Hourly(START, series.observed), Supply(installed=80), models())
    usual = sum(series.truth[-WEEK:]) / WEEK
    fourth = sum(band.middle for band in prediction.hours[3 * WEEK : 4 * WEEK]) / WEEK
    if kind == "outage":
        assert fourth == pytest.approx(usual, rel=0.15)
    else:  # a whole week of a third: nobody can know that it was a holiday, but the band tells
        assert prediction.hours[4 * WEEK - 80].high > 0.6 * usual


def trace(name: str) -> Hourly:
    with (TRACES / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return hourly(
        (datetime.fromisoformat(f"{row['time']}Z").timestamp(), float(row["value"])) for row in rows
    )


def test_a_real_cluster_of_a_month() -> None:
    """Helios' Earth: 4.4 weeks, in which one day was without jobs."""
    demand = trace("helios_earth")
    assert len(demand.values) == 31 * 24
    prediction = outlook(demand, Supply(installed=856, gang=64, lead_weeks=12), models())
    assert prediction.tested is not None
    assert prediction.tested.errors[prediction.model].mean <= prediction.tested.errors[NAIVE].mean
    assert len(prediction.weeks) == 4
    assert prediction.verdict == "order now"  # demand is 886 of 856 GPUs on the 29th
    assert any("4 weeks" in note for note in prediction.notes)


@pytest.mark.slow
def test_a_real_cluster_of_ten_weeks() -> None:
    """Philly: a forecast beats seasonal-naive, by little: the demand of real clusters wanders."""
    demand = trace("philly")
    assert 0 < demand.holes < 0.01
    prediction = outlook(demand, Supply(installed=420, lead_weeks=8), models())
    assert prediction.tested is not None
    assert prediction.model != NAIVE
    assert 0 < prediction.tested.gain < 0.5
