"""Which time a report is about: spans, days, months, time zones, and what Prometheus still has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.cost.period import Period, check_kept, days_fit, period, retention_s, time_zone

NOW = int(datetime(2026, 11, 10, 12, 34, 56, tzinfo=UTC).timestamp())
BERLIN = time_zone("Europe/Berlin")


def window(since: str = "", until: str = "", month: str = "", zone: str = "UTC") -> tuple[str, ...]:
    """Beginning and end in UTC, and the step."""
    bounds = period(since, until, month, time_zone(zone), NOW).window
    first, last = (
        datetime.fromtimestamp(moment, UTC).strftime("%m-%dT%H:%M")
        for moment in (bounds.start, bounds.end)
    )
    return first, last, str(bounds.step)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ("11-03T12:00", "11-10T12:00", "3600")),
        ({"since": "24h"}, ("11-09T12:00", "11-10T12:00", "3600")),
        ({"since": "90m"}, ("11-10T11:04", "11-10T12:34", "60")),
        ({"since": "2d", "until": "2026-11-05"}, ("11-03T00:00", "11-05T00:00", "3600")),
        ({"since": "2026-11-01", "zone": "Asia/Kolkata"}, ("10-31T18:30", "11-10T12:00", "1800")),
        ({"month": "2026-10", "zone": "Europe/Berlin"}, ("09-30T22:00", "10-31T23:00", "3600")),
        ({"month": "2026-11"}, ("11-01T00:00", "11-10T12:00", "3600")),
        ({"since": "2026-11-10T11:45+01:00"}, ("11-10T10:45", "11-10T12:00", "900")),
    ],
)
def test_times_that_people_give(arguments: dict[str, str], expected: tuple[str, ...]) -> None:
    assert window(**arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"since": "2026-11-05", "until": "2026-11-04"}, "begins .* when it has ended"),
        ({"since": "2026-11-20"}, "begins .* when it has ended"),
        ({"until": "2026-12-01"}, "is in the future"),
        ({"since": "yesterday"}, "'yesterday' is no time"),
        ({"month": "2026-13"}, "is no month"),
        ({"month": "2026-12"}, "is in the future"),
        ({"month": "2026-10", "since": "7d"}, "--month beside"),
        ({"since": "2026-11-01T00:07"}, "counted in minutes for days"),
        ({"zone": "Europe/Atlantis"}, "no time zone 'Europe/Atlantis'"),
    ],
)
def test_times_that_are_none(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(CostError, match=message) as error:
        window(**arguments)
    assert "remedy: " in str(error.value)


def test_days_of_a_zone() -> None:
    result = period("", "", "2026-10", BERLIN, NOW)
    days = [result.day(step) for step in result.window.steps]
    assert (days[0], days[-1]) == ("2026-10-01", "2026-10-31")
    assert days.count("2026-10-25") == 25


def test_recorded_steps_and_the_days_of_another_zone() -> None:
    start = NOW // 86400 * 86400
    assert days_fit(start, start + 86400, 3600, BERLIN) == Period(
        days_fit(start, start + 86400, 3600, UTC).window, BERLIN
    )
    with pytest.raises(CostError, match="recorded in steps of 3600 s"):
        days_fit(start, start + 86400, 3600, time_zone("Asia/Kolkata"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15d", 15 * 86400), ("1w3d or 42GiB", 10 * 86400), ("42GiB", None), ("", None),
     ("1y", 365 * 86400)],
)  # fmt: skip
def test_retention(text: str, seconds: int | None) -> None:
    assert retention_s(text) == seconds


def test_a_time_that_prometheus_has_forgotten() -> None:
    requested = period("20d", "", "", UTC, NOW)
    check_kept(requested, "30d", NOW)
    check_kept(requested, "", NOW)
    with pytest.raises(CostError, match="keeps 15d or 42GiB, and 2026-10-21") as error:
        check_kept(requested, "15d or 42GiB", NOW)
    assert "--since 2026-10-26T13:00" in str(error.value)
    assert "--save FILE" in str(error.value)
