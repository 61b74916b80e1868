"""The time that a report is about, in the days of the site's time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.series import Window

STEPS = (3600, 1800, 900, 300, 60)
_SHORT_S = 6 * 3600  # shorter windows begin and end with any minute
_LONG_S = 3 * 86400  # longer ones are counted in steps of a quarter of an hour or more
_COARSE_S = 900
_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"(\d+)([mhdw])")
_MONTH = re.compile(r"(\d{4})-(\d\d)")


@dataclass(frozen=True)
class Period:
    """A window, and the zone whose midnights divide it into days."""

    window: Window
    zone: tzinfo

    def day(self, step: int) -> str:
        """The day in which a step begins, such as 2026-10-25."""
        return datetime.fromtimestamp(step, self.zone).date().isoformat()

    def format_moment(self, moment: int) -> str:
        """A moment for people."""
        return datetime.fromtimestamp(moment, self.zone).strftime("%Y-%m-%d %H:%M %Z")


def time_zone(name: str) -> ZoneInfo:
    """The zone of a name such as Europe/Berlin. Raises `CostError`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CostError(
            f"no time zone {name!r} is known on this machine",
            "a name such as Europe/Berlin or UTC; on Debian install tzdata",
        ) from None


def period(since: str, until: str, month: str, zone: tzinfo, now: int) -> Period:
    """The time that somebody asked for.

    + since: a day, a day and time, or a span such as 7d, which ends at `until`; "": 7d
    + until: a day (its beginning), or a day and time; "": now, by the full hour
    + month: such as 2026-10, instead of both; "": none
    + now: unix seconds

    Raises `CostError` for what is no time, for a beginning that is not before its end, and for the
    future.
    """
    if month:
        if since or until:
            raise CostError(
                "--month beside --since or --until", "give either the one or the others"
            )
        start, end = _month(month, zone)
        end = min(end, now // 3600 * 3600) if start < now else end
    else:
        start, end = _since_until(since, until, zone, now)
    if start >= end:
        raise CostError(
            f"the time begins ({_iso(start, zone)}) when it has ended ({_iso(end, zone)})",
            "let --since be before --until, and a month have begun an hour ago",
        )
    if end > now:
        raise CostError(
            f"{_iso(end, zone)} is in the future", f"--until {_iso(now // 3600 * 3600, zone)}"
        )
    return _in_steps(start, end, zone)


def retention_s(retention: str) -> int | None:
    """Seconds of Prometheus' retention, such as `15d or 42GiB`; None where it names no time."""
    match = re.match(r"((?:\d+(?:ms|[smhdwy]))+)", retention)
    if match is None:
        return None
    units = {**_UNITS, "s": 1, "y": 365 * 86400}
    parts = re.findall(r"(\d+)(ms|[smhdwy])", match[1])
    return sum(int(number) * units.get(unit, 0) for number, unit in parts)


def check_kept(period: Period, retention: str, now: int) -> None:
    """Raise `CostError` where the time begins before what Prometheus still has."""
    seconds = retention_s(retention)
    if seconds is not None and period.window.start < now - seconds:
        oldest = -(-(now - seconds) // 3600) * 3600
        raise CostError(
            f"Prometheus keeps {retention}, and {period.format_moment(period.window.start)} is "
            "longer ago",
            f"--since {_iso(oldest, period.zone)}; for later reports raise monitoring.retention, "
            "or keep the answers of each month by --save FILE and name that instead of INVENTORY",
        )


def _since_until(since: str, until: str, zone: tzinfo, now: int) -> tuple[int, int]:
    span = _SPAN.fullmatch(since or "7d")
    if span is None:
        start = _moment(since, zone)
        return start, _moment(until, zone) if until else now // 3600 * 3600
    seconds = int(span[1]) * _UNITS[span[2]]
    granularity = 60 if seconds < _SHORT_S else 3600
    end = _moment(until, zone) if until else now // granularity * granularity
    return end - seconds, end


def days_fit(start: int, end: int, step: int, zone: tzinfo) -> Period:
    """The period in steps of a given length. Raises `CostError` where a day begins within one."""
    if any((bound - start) % step for bound in _bounds(start, end, zone)):
        raise CostError(
            f"the answers were recorded in steps of {step} s, and a day, or the time that is asked "
            "for, begins or ends within one",
            "times that begin and end with a recorded step",
        )
    return Period(Window(start, end, step), zone)


def _in_steps(start: int, end: int, zone: tzinfo) -> Period:
    """The period in the longest steps that begin with it and with each of its days."""
    bounds = _bounds(start, end, zone)
    step = next(
        (candidate for candidate in STEPS if not any(bound % candidate for bound in bounds)), None
    )
    if step is None or (end - start > _LONG_S and step < _COARSE_S):
        raise CostError(
            f"{_iso(start, zone)} to {_iso(end, zone)} is counted in minutes for days",
            "begin and end with a full hour",
        )
    return Period(Window(start, end, step), zone)


def _bounds(start: int, end: int, zone: tzinfo) -> list[int]:
    """The period's beginning, every midnight within it, and its end."""
    bounds = [start, end]
    day = datetime.fromtimestamp(start, zone).date()
    while (bound := _midnight(day := day + timedelta(days=1), zone)) < end:
        bounds.append(bound)
    return bounds


def _month(text: str, zone: tzinfo) -> tuple[int, int]:
    match = _MONTH.fullmatch(text)
    if match is None or not 1 <= int(match[2]) <= 12:
        raise CostError(f"{text!r} is no month", "such as --month 2026-10")
    year, number = int(match[1]), int(match[2])
    following = date(year + number // 12, number % 12 + 1, 1)
    return _midnight(date(year, number, 1), zone), _midnight(following, zone)


def _moment(text: str, zone: tzinfo) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CostError(
            f"{text!r} is no time", "a day such as 2026-10-25, 2026-10-25T12:00, or a span as 7d"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())


def _midnight(day: date, zone: tzinfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())


def _iso(moment: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%dT%H:%M")
