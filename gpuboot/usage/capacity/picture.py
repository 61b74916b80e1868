"""The report of capacity as a page: a picture of each pool's demand, and what the terminal says."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from markupsafe import Markup

from gpuboot.usage.capacity.fit import sizes
from gpuboot.usage.capacity.hourly import DAY, HOUR, WEEK
from gpuboot.usage.capacity.outlook import Outlook
from gpuboot.usage.capacity.report import (
    Capacity,
    backtest_words,
    exhausted_words,
    need_words,
)
from gpuboot.verify.report.page import page

# Pixels of a window on a desk, and of half of one.
WIDE, MIDDLE, HEIGHT = 1096.0, 690.0, 370.0
_LEFT_MARGIN, _RIGHT_MARGIN, _TOP_MARGIN, _BOTTOM_MARGIN = 46.0, 150.0, 54.0, 28.0
_LETTER = 12.0  # lines of text nearer to each other than this overlap

Point = tuple[float, float]
T = TypeVar("T")


@dataclass(frozen=True)
class Text:
    """+ end: it ends at x instead of beginning there"""

    x: float
    y: float
    text: str
    end: bool = False


@dataclass(frozen=True)
class Picture:
    """Where everything is, in pixels.

    + past: lines of what was seen, broken at holes; middle: P50; band: around P10 to P90
    + levels: class, y of a line across, e.g. what is installed
    + marks: class, x and upper end of a line upright, which begins beside its name
    + ticks: x of a date below, grid: y of a number at the left
    """

    past: tuple[tuple[Point, ...], ...]
    middle: tuple[Point, ...]
    band: tuple[Point, ...]
    levels: tuple[tuple[str, float], ...]
    marks: tuple[tuple[str, float, float], ...]
    ticks: tuple[float, ...]
    grid: tuple[float, ...]
    texts: tuple[Text, ...]
    width: float
    right: float
    left: float = _LEFT_MARGIN
    top: float = _TOP_MARGIN
    bottom: float = HEIGHT - _BOTTOM_MARGIN
    height: float = HEIGHT


def html(report: Capacity) -> str:
    """The page, without any other file."""
    drawings = [
        (
            pool,
            outlook,
            _svgs(outlook, f"demand-{number}", str(pool)) if _whole_days(outlook) > 1 else (),
        )
        for number, (pool, outlook) in enumerate(report.outlooks)
    ]
    return page(
        "capacity.html.j2",
        report=report,
        drawn=drawings,
        backtest_words=backtest_words,
        need_words=need_words,
        exhausted_words=exhausted_words,
        sizes=sizes,
        signs={"enough": "pass", "order soon": "not_covered", "order now": "fail",
               "unknown": "not_covered"},
    )  # fmt: skip


def _svgs(outlook: Outlook, name: str, pool: str) -> list[Markup]:
    """The picture in two widths, of which the page shows the one that fits the window."""
    summary = (
        f"Exhausted {exhausted_words(outlook)}"
        if outlook.weeks
        else f"No forecast: {outlook.refusal}"
    )
    words = f"Demand for {pool or 'GPUs'}, by the day. {summary}."
    return [
        Markup(
            page(
                "capacity.svg.j2",
                p=picture(outlook, width),
                name=f"{name}-{fits}",
                fits=fits,
                description=words,
            )
        )
        for fits, width in (("wide", WIDE), ("middle", MIDDLE))
    ]


@dataclass(frozen=True)
class _Frame:
    """Where moments and numbers of GPUs are. + past: whole days; scale: GPUs at the top"""

    start: int
    end: int
    past: tuple[float | None, ...]
    forecast: tuple[tuple[float, float, float], ...]
    step: float
    scale: float
    width: float

    @property
    def right(self) -> float:
        return self.width - _RIGHT_MARGIN

    def x(self, moment: float) -> float:
        return _LEFT_MARGIN + (self.right - _LEFT_MARGIN) * (moment - self.start) / (
            self.end - self.start
        )

    def y(self, gpus: float) -> float:
        return HEIGHT - _BOTTOM_MARGIN - (HEIGHT - _BOTTOM_MARGIN - _TOP_MARGIN) * gpus / self.scale

    def day(self, number: int) -> float:
        """The middle of a day. + number: from the first on"""
        return self.x(self.start + (number + 0.5) * DAY * HOUR)


def _frame(outlook: Outlook, width: float) -> _Frame:
    """Means by the day, counted back from the end of the history."""
    remainder = len(outlook.history.values) % DAY
    start = outlook.history.start + remainder * HOUR
    past = tuple(_mean(day) for day in _days(outlook.history.values[remainder:]))
    hours = [(band.low, band.middle, band.high) for band in outlook.hours]
    forecast = tuple(
        (statistics.fmean(low), statistics.fmean(middle), statistics.fmean(high))
        for low, middle, high in (zip(*day, strict=True) for day in _days(hours))
    )
    observed = [value for value in past if value is not None]
    peak = max([1.0, outlook.supply.installed or 0, *observed, *(high for _, _, high in forecast)])
    step = _step(peak)
    end = max(start + DAY * HOUR, outlook.history.end + len(hours) * HOUR)
    return _Frame(start, end, past, forecast, step, math.ceil(peak * 1.04 / step) * step, width)


def picture(outlook: Outlook, width: float = WIDE) -> Picture:
    """Means by the day of what was seen and of what is forecast."""
    frame = _frame(outlook, width)
    low, middle, high = (
        [
            (frame.day(len(frame.past) + day), frame.y(band[which]))
            for day, band in enumerate(frame.forecast)
        ]
        for which in range(3)
    )
    installed, room = outlook.supply.installed, outlook.supply.room
    levels: tuple[tuple[str, float], ...] = ()
    if installed is not None:
        levels = (("installed", installed), ("room", room))
    return Picture(
        past=tuple(_past(frame)),
        middle=tuple(middle),
        band=(*high, *reversed(low)),
        levels=tuple((kind, frame.y(gpus)) for kind, gpus in levels),
        marks=tuple((kind, x, y - _LETTER + 2) for kind, x, y, _ in _marks(outlook, frame)),
        ticks=tuple(frame.x(moment) for moment in _dates(frame)),
        grid=tuple(frame.y(gpus) for gpus in _numbers(frame)),
        texts=(*_axes(frame), *_words(outlook, frame)),
        width=width,
        right=frame.right,
    )


def _past(frame: _Frame) -> Iterator[tuple[Point, ...]]:
    """Lines between days of which something is known."""
    points: list[Point] = []
    for day, value in enumerate(frame.past):
        if value is not None:
            points.append((frame.day(day), frame.y(value)))
        elif points:
            yield tuple(points)
            points = []
    if points:
        yield tuple(points)


def _days(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(values), DAY):
        yield values[at : at + DAY]


def _whole_days(outlook: Outlook) -> int:
    """Days of which something is known; a line takes two."""
    remainder = len(outlook.history.values) % DAY
    return sum(_mean(day) is not None for day in _days(outlook.history.values[remainder:]))


def _mean(values: Sequence[float | None]) -> float | None:
    known_values = [value for value in values if value is not None]
    return statistics.fmean(known_values) if known_values else None


def _step(maximum: float) -> float:
    """A round number of which four to eight make the scale."""
    size = 10 ** math.floor(math.log10(maximum / 4)) if maximum >= 4 else 1
    return float(next(size * factor for factor in (1, 2, 5, 10) if maximum / (size * factor) <= 8))


def _numbers(frame: _Frame) -> list[float]:
    return [number * frame.step for number in range(round(frame.scale / frame.step) + 1)]


def _dates(frame: _Frame) -> list[int]:
    """Mondays, as many as can be read."""
    monday = frame.start + (4 * DAY * HOUR - frame.start) % (WEEK * HOUR)  # 1970-01-05 was one
    max_labels = round((frame.right - _LEFT_MARGIN) / 100)
    weeks = max(1, math.ceil((frame.end - frame.start) / (WEEK * HOUR) / max_labels))
    return list(range(monday, frame.end, weeks * WEEK * HOUR))


def _moments(outlook: Outlook) -> Iterator[tuple[int, str, str]]:
    """Moments that matter: unix seconds, class, word."""
    if not outlook.weeks:
        return
    yield outlook.history.end, "now", "now"
    yield (
        outlook.history.end + outlook.supply.lead_weeks * WEEK * HOUR,
        "lead",
        "end of the lead time",
    )
    if outlook.exhausted and outlook.exhausted.middle:
        begins = (outlook.exhausted.middle - 1) * WEEK * HOUR
        yield outlook.history.end + begins, "exhausted", "exhausted"


def _marks(outlook: Outlook, frame: _Frame) -> Iterator[tuple[str, float, float, str]]:
    """Class, x and y of the word, and the word: above the picture, the first moment highest.

    So no line goes through a word: those of later moments begin below it.
    """
    moments = sorted(moment for moment in _moments(outlook) if moment[0] <= frame.end)
    for row, (moment, kind, words) in enumerate(moments):
        yield kind, frame.x(moment), _LETTER + row * (_LETTER + 2), words


def _axes(frame: _Frame) -> Iterator[Text]:
    for gpus in _numbers(frame):
        yield Text(_LEFT_MARGIN - 6, frame.y(gpus) + 4, f"{gpus:g}", end=True)
    for moment in _dates(frame):
        date = datetime.fromtimestamp(moment, UTC).strftime("%d %b")
        yield Text(frame.x(moment), HEIGHT - 8, date)


def _words(outlook: Outlook, frame: _Frame) -> Iterator[Text]:
    """Names beside what they name, none upon another."""
    labels: list[tuple[float, str]] = []
    if outlook.supply.installed is not None:
        labels.append((outlook.supply.installed, f"installed: {outlook.supply.installed}"))
        labels.append((outlook.supply.room, f"P95 may reach {outlook.supply.room:.0f}"))
    if frame.forecast:
        labels += zip(frame.forecast[-1], ("P10", "P50", "P90"), strict=True)
    below = -math.inf
    for place, words in sorted((frame.y(gpus), words) for gpus, words in labels):
        below = max(place + 4, below + _LETTER + 1)
        yield Text(frame.right + 8, below, words)
    for _, x, y, words in _marks(outlook, frame):
        yield Text(x + 4, y, words)
