"""`gpuboot capacity` but for its models: refusals, the need, verdicts and the command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, ranges
from gpuboot.usage.capacity import models
from gpuboot.usage.capacity.backtest import backtest, quantile
from gpuboot.usage.capacity.capacity_report import Capacity
from gpuboot.usage.capacity.hourly import HOUR, WEEK, Hourly, filled, hourly, too_little
from gpuboot.usage.capacity.models import NAIVE, seasonal_naive
from gpuboot.usage.capacity.outlook import Exhausted, Supply, outlook
from gpuboot.usage.capacity.pools import Pool
from gpuboot.usage.series import History, StepSeries, Window
from tests.unit.demand_series import START, season, trend

NAIVE_ONLY = {NAIVE: seasonal_naive}
runner = CliRunner()


def test_hours_are_means_and_what_is_not_there_is_unknown() -> None:
    result = hourly([(START + 10, 4.0), (START + 3000, 6.0), (START + 2 * HOUR, 1.0)])
    assert result == Hourly(START, (5.0, None, 1.0))
    assert result.end == START + 3 * HOUR
    assert hourly([]).values == ()
    assert hourly([(START, float("nan"))]).values == ()


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (Hourly(0, ()), "there is no history at all"),
        (Hourly(0, (1.0,) * 30), "30 hours of history; 3 weeks are needed, 4 recommended"),
        (Hourly(0, (1.0,) * (3 * WEEK - 1)), "21.0 days of history; 3 weeks are needed"),
        (Hourly(0, (1.0,) * (3 * WEEK)), ""),
        (Hourly(0, (1.0, *[None] * 100, *[1.0] * 403)), ""),
        (
            Hourly(0, (1.0, *[None] * 101, *[1.0] * 402)),
            "20.0% of the hours are missing (101 of 504",
        ),
        (
            Hourly(0, (1.0, *[None] * 120, *[1.0] * 383)),
            "23.8% of the hours are missing (120 of 504",
        ),
        (Hourly(0, (1.0, *[None] * 120, *[1.0] * 383)), "the longest hole 5.0 days); 20% may be"),
    ],
)
def test_too_little_history_is_refused_with_what_it_takes(history: Hourly, message: str) -> None:
    reason = too_little(history)
    assert reason.startswith(message) or (message and message in reason)
    assert bool(outlook(history, Supply(8), NAIVE_ONLY).refusal) == bool(message)


def test_a_hole_is_filled_from_the_same_hour_of_a_week_beside_it() -> None:
    values = [float(hour % WEEK) for hour in range(3 * WEEK)]
    holed: list[float | None] = list(values)
    holed[WEEK + 5 : WEEK + 60] = [None] * 55
    assert filled(Hourly(0, tuple(holed))) == values


def test_the_need_is_the_formula() -> None:
    supply = Supply(installed=64, unavailable=1.2, gang=8, target=0.85)
    assert supply.need(34.0) == 40 + 2 + 8
    assert supply.need(34.1) == 41 + 2 + 8
    assert supply.need(0.0) == 10


def test_quantiles_are_linear_between_neighbours() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([0.0, 10.0], 0.95) == pytest.approx(9.5)
    assert quantile([7.0], 0.9) == 7.0


def steady(level: float, weeks: int = 12, rising: float = 0.0) -> Hourly:
    """The same each hour, but for what it rises each week, all at once."""
    return Hourly(START, tuple(level + rising * (hour // WEEK) for hour in range(weeks * WEEK)))


def rising(values: Sequence[float], hours: int) -> list[float]:
    """A model that knows the truth of `steady`."""
    slope = values[-1] - values[-WEEK - 1]
    return [values[-WEEK + hour % WEEK] + slope * (hour // WEEK + 1) for hour in range(hours)]


def test_the_model_with_the_least_error_is_used_and_naive_where_none_beats_it() -> None:
    values = filled(steady(20.0, rising=2.0))
    known_models = {NAIVE: seasonal_naive, "truth": rising}
    tested = backtest(values, known_models)
    assert tested.best == "truth"
    assert tested.errors["truth"].mean == pytest.approx(0, abs=1e-9)
    assert tested.errors[NAIVE].mean == pytest.approx(5.0)  # 2, 4, 6 and 8
    assert tested.gain == 1
    equal = {"another": seasonal_naive, NAIVE: seasonal_naive}
    equal_backtest = backtest(values, equal)
    assert equal_backtest.best == NAIVE
    forecast = outlook(steady(20.0), Supply(64), {**equal})
    assert forecast.model == NAIVE
    assert "no model beat seasonal-naive in the backtest, so the last week is repeated" in (
        forecast.notes
    )


@pytest.mark.parametrize(
    ("installed", "lead", "weeks", "verdict", "code"),
    [
        # P95 of week n to come is 42 + 2n; the need is that / 0.85, rounded up, + 4
        (60, 12, (3, 3, 3), "order now", 1),  # 46 -> 59, 48 -> 61
        (60, 2, (3, 3, 3), "enough", 0),
        (40, 2, (0, 0, 0), "order now", 1),
        (200, 12, (None, None, None), "enough", 0),
        (200, 13, (None, None, None), "unknown", 2),  # further than the history reaches back
        (None, 12, None, "unknown", 2),
    ],
)
def test_gpus_run_out_when_the_need_is_more_than_what_is_installed(
    installed: int | None, lead: int, weeks: tuple[int | None, ...] | None, verdict: str, code: int
) -> None:
    supply = Supply(installed, gang=4, lead_weeks=lead)
    known_models = {NAIVE: seasonal_naive, "truth": rising}
    forecast = outlook(steady(20.0, rising=2.0), supply, known_models)
    exhausted = forecast.exhausted
    assert (exhausted and (exhausted.early, exhausted.middle, exhausted.late)) == weeks
    assert forecast.verdict == verdict
    assert Capacity("lab", ((Pool("H100", ""), forecast),)).exit_code == code
    assert len(forecast.weeks) == 12
    assert forecast.weeks[0].peak.middle == pytest.approx(44.0)


@pytest.mark.parametrize(
    ("weeks", "verdict"),
    [
        ((3, 9, None), "order now"),
        ((3, 13, None), "order soon"),
        ((12, None, None), "order soon"),
        ((13, None, None), "enough"),
        ((None, None, None), "enough"),
    ],
)
def test_a_band_that_reaches_into_the_lead_time_says_order_soon(
    weeks: tuple[int | None, int | None, int | None], verdict: str
) -> None:
    calm = outlook(steady(20.0), Supply(64, lead_weeks=12), NAIVE_ONLY)
    assert replace(calm, exhausted=Exhausted(*weeks)).verdict == verdict


def test_bands_widen_with_the_weeks() -> None:
    forecast = outlook(Hourly(START, season(10, seed=4).observed), Supply(90), NAIVE_ONLY)
    widths = [week.demand.high - week.demand.low for week in forecast.weeks]
    assert widths[0] > 2
    assert widths[-1] > 1.4 * widths[0]
    assert all(week.need.low <= week.need.middle <= week.need.high for week in forecast.weeks)


def test_the_command_on_a_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "find_spec", lambda _: None)  # as without the extra
    values = trend(8).observed
    demand = {START + hour * HOUR: value for hour, value in enumerate(values) if value is not None}
    window = Window(START, START + len(values) * HOUR, HOUR)
    history = History(window, {"allocated": (StepSeries({}, demand),)})
    monkeypatch.setattr(ranges, "at_address", lambda *_: history)
    site = "https://prometheus.example.org"
    options = ["--installed", "50", "--lead-time", "4"]
    result = runner.invoke(app, ["capacity", site, *options])
    assert result.exit_code == 1, result.output
    assert "demand: ORDER NOW" in result.stdout
    assert re.search(
        r"8 times 3 weeks ahead, mean error in GPUs: seasonal-naive [\d.]+ \(used\)\n",
        result.stdout,
    )
    assert "scripts/setup --forecast installs it" in result.stdout
    assert "lead time 4 weeks" in result.stdout
    need = re.search(
        r"now (\d+) of 50 installed: ceil\(P95 of demand (\d+) / 0.85\)", result.stdout
    )
    assert need
    assert abs(int(need[1]) - int(need[2]) / 0.85) < 2
    json_result = runner.invoke(app, ["capacity", site, *options, "--json"])
    document = json.loads(json_result.stdout)
    assert document["exit_code"] == 1
    (pool,) = document["pools"]
    assert pool["model_used"] == NAIVE
    assert len(pool["weeks"]) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'INVENTORY'"),
        (["x.py", "--target", "2"], "less than or equal to 1"),
        (["ftp://prometheus:9090"], "is no address"),
    ],
)
def test_wrong_words_are_answered(arguments: list[str], message: str) -> None:
    result = runner.invoke(app, ["capacity", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert message in result.output
