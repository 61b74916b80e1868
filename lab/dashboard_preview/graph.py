"""Panels that have a time axis, as SVG: lines, stacks, bars, states and heat."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby, pairwise
from typing import Any

from lab.dashboard_preview.panels import Series, TimeRange
from lab.dashboard_preview.values import PALETTE, at_threshold, colour, format_value, heat, state

Object = dict[str, Any]
Point = tuple[float, float]
# a series, what it stands on, and its points
Stacked = tuple[Series, list[float], Sequence[Point]]
_BOTTOM, _LEGEND = 16, 16
_LEGEND_LINES = 3
_ROWS = 20  # of a state timeline: Grafana shows the others on further pages
Entry = tuple[str, str, str]  # a series' name, colour and dashes
_LETTER = 6.1  # px of an average letter at 11 px


class Canvas:
    """An SVG of one panel: where times and values lie, and what is drawn so far."""

    def __init__(
        self, width: int, height: int, left_x: float, bottom: int, times: TimeRange
    ) -> None:
        self.width, self.height, self.left_x = width, height, left_x
        self.floor = height - bottom
        self._times = times
        self._low, self._high = 0.0, 1.0
        self._parts: list[str] = []

    def scale(self, low: float, high: float) -> None:
        self._low, self._high = low, high if high > low else low + 1

    def x(self, at: float) -> float:
        share = (at - self._times.start) / (self._times.end - self._times.start)
        return self.left_x + share * (self.width - self.left_x - 4)

    def y(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return self.floor - share * (self.floor - 6)

    def line(self, points: Sequence[tuple[float, float]], ink: str, extra: str = "") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{path}" fill="none" stroke="{ink}" {extra}/>')

    def area(self, points: Sequence[tuple[float, float]], ink: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polygon points="{path}" fill="{ink}" fill-opacity="0.35"/>')

    def box(self, x: float, y: float, width: float, height: float, ink: str) -> None:
        size = f'width="{max(width, 0.5):.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{ink}"/>')

    def text(self, x: float, y: float, words: str, anchor: str = "start", size: float = 11) -> None:
        style = f' style="font-size:{size:.1f}px"' if size < 11 else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(words)}</text>'
        )

    def time_axis(self) -> None:
        span = self._times.end - self._times.start
        form = "%H:%M:%S" if span < 600 else "%H:%M" if span < 2 * 86400 else "%d. %H:%M"
        for part in range(5):
            at = self._times.start + span * (part + 0.5) / 5
            self.text(self.x(at), self.floor + 13, time.strftime(form, time.gmtime(at)), "middle")

    def svg(self) -> str:
        size = f'width="{self.width}" height="{self.height}"'
        return f"<svg {size}>{''.join(self._parts)}</svg>"


def lines(
    panel: Object, all_series: Sequence[Series], times: TimeRange, width: int, height: int
) -> str:
    """A time series panel: lines, or stacked areas, thresholds as dashed lines, a legend."""
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    stacked = custom["stacking"]["mode"] == "normal"
    unit = defaults["unit"]
    stacked_series = (
        _stack(all_series)
        if stacked
        else [(s, [0.0] * len(s.points), s.points) for s in all_series]
    )
    limits = _limits(defaults)
    low, high = _range(defaults, [v for _, _, points in stacked_series for _, v in points], limits)
    ticks = list(_ticks(low, high))
    high = max(high, ticks[-1])
    labels = [format_value(tick, unit) for tick in ticks]
    entries = [
        _entry(panel, number, series) for number, (series, _, _) in enumerate(stacked_series)
    ]
    label_width = max(map(len, labels)) * _LETTER + 8
    legend = (
        _lines(entries, width - label_width) if panel["options"]["legend"]["showLegend"] else []
    )
    canvas = Canvas(width, height, label_width, _BOTTOM + _LEGEND * len(legend), times)
    canvas.scale(low, high)
    for tick, label in zip(ticks, labels, strict=True):
        y = canvas.y(tick)
        canvas.line([(canvas.left_x, y), (width, y)], "#2c3235")
        canvas.text(canvas.left_x - 5, y + 4, label, "end")
    _draw_series(canvas, stacked_series, entries, times.step, stacked)
    for value, ink in limits:
        ends = [(canvas.left_x, canvas.y(value)), (width, canvas.y(value))]
        canvas.line(ends, ink, 'stroke-dasharray="6 4"')
    canvas.time_axis()
    _legend(canvas, legend)
    return canvas.svg()


def _entry(panel: Object, number: int, series: Series) -> Entry:
    """How a series stands in the legend, and its line in the graph."""
    dashes = ""
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"] == {"id": "byFrameRefID", "options": series.ref}:
            (style,) = override["properties"]
            dashes = " ".join(map(str, style["value"]["dash"]))
    return series.name, PALETTE[number % len(PALETTE)], dashes


def _draw_series(
    canvas: Canvas,
    stacked_series: Sequence[Stacked],
    entries: Sequence[Entry],
    step: int,
    stacked: bool,
) -> None:
    for (_, floor, points), (_, ink, dashes) in zip(stacked_series, entries, strict=True):
        style = f'stroke-width="1.4" stroke-dasharray="{dashes}"'
        for run in _runs(points, step):
            placed = [(canvas.x(at), canvas.y(value)) for at, value in run]
            canvas.line(placed if len(placed) > 1 else placed * 2, ink, style)
            if stacked:
                under = dict(zip((at for at, _ in points), floor, strict=True))
                back = [(canvas.x(at), canvas.y(under[at])) for at, _ in reversed(run)]
                canvas.area([*placed, *back], ink)


def _limits(defaults: Object) -> list[tuple[float, str]]:
    if defaults["custom"]["thresholdsStyle"]["mode"] == "off":
        return []
    steps = defaults["thresholds"]["steps"]
    return [(step["value"], colour(step["color"])) for step in steps if step["value"] is not None]


def _range(
    defaults: Object, values: list[float], limits: Sequence[tuple[float, str]]
) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)] + [value for value, _ in limits]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if defaults.get("min") is not None:
        low = defaults["min"]
    if defaults.get("max") is not None:
        return low, max(defaults["max"], high)
    pad = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return (low if defaults.get("min") is not None else low - pad), high + pad


def _ticks(low: float, high: float) -> Iterator[float]:
    """Round numbers from `low` to `high`, about four."""
    rough = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    tick = math.ceil(low / step - 1e-9) * step
    while tick <= high + step * 1e-9:
        yield round(tick, 12)
        tick += step


def _stack(all_series: Sequence[Series]) -> list[Stacked]:
    heights: dict[float, float] = {}
    stacked_series: list[Stacked] = []
    for series in all_series:
        floor = [heights.get(at, 0.0) for at, _ in series.points]
        top = [(at, value + heights.get(at, 0.0)) for at, value in series.points]
        heights.update(top)
        stacked_series.append((series, floor, top))
    return stacked_series


def _runs(points: Sequence[Point], step: int) -> Iterator[list[Point]]:
    """Points without a gap between them: a line across a gap would show what nobody measured."""
    run: list[Point] = []
    for point in points:
        if run and (point[0] - run[-1][0] > 1.5 * step or not math.isfinite(point[1])):
            yield run
            run = []
        if math.isfinite(point[1]):
            run.append(point)
    if run:
        yield run


def _wide(name: str) -> float:
    """Pixels of a name in the legend."""
    return len(name) * _LETTER + 28


def _lines(entries: Sequence[Entry], width: float) -> list[list[Entry]]:
    """The legend's lines; what does not fit into the last is counted there."""
    legend: list[list[Entry]] = [[]]
    for number, entry in enumerate(entries):
        used = sum(_wide(name) for name, _, _ in legend[-1])
        if legend[-1] and used + _wide(entry[0]) > width - 40:
            if len(legend) == _LEGEND_LINES:
                legend[-1].append((f"+{len(entries) - number}", "", ""))
                break
            legend.append([])
        legend[-1].append(entry)
    return legend


def _legend(canvas: Canvas, legend: Sequence[Sequence[Entry]]) -> None:
    for number, line in enumerate(legend):
        x, y = canvas.left_x, canvas.height - 3 - _LEGEND * (len(legend) - 1 - number)
        for name, ink, dashes in line:
            if ink:
                style = f'stroke-width="3" stroke-dasharray="{dashes}"'
                canvas.line([(x, y - 4), (x + 14, y - 4)], ink, style)
            canvas.text(x + 18, y, name)
            x += _wide(name)


def states(
    panel: Object, all_series: Sequence[Series], times: TimeRange, width: int, height: int
) -> str:
    """A state timeline: one bar for each series, one colour for each state."""
    defaults = panel["fieldConfig"]["defaults"]
    all_series = all_series[:_ROWS]
    options = [o for m in defaults.get("mappings") or [] for o in m["options"].values()]
    legend = _lines([(o["text"], colour(o["color"]), "") for o in options], width * 0.8)
    canvas, row = _rows(all_series, times, width, height, len(legend))
    for number, series in enumerate(all_series):
        y = 4 + number * row
        canvas.text(canvas.left_x - 6, y + row * 0.45 + 4, series.name, "end", size=min(row, 11))
        for start, end, value in _spans(series.points, times.step):
            mapped_state = state(value, defaults.get("mappings"))
            ink = (
                mapped_state[1] if mapped_state else at_threshold(value, defaults.get("thresholds"))
            )
            canvas.box(canvas.x(start), y, canvas.x(end) - canvas.x(start), row * 0.85, ink)
    canvas.time_axis()
    _legend(canvas, legend)
    return canvas.svg()


def heatmap(
    panel: Object, all_series: Sequence[Series], times: TimeRange, width: int, height: int
) -> str:
    """A heatmap: one line of cells for each series, from 0 to 1."""
    canvas, row = _rows(all_series, times, width, height, 1)
    for number, series in enumerate(all_series):
        y = 4 + number * row
        canvas.text(canvas.left_x - 6, y + row * 0.45 + 4, series.name, "end", size=min(row, 11))
        for at, value in series.points:
            end = min(at + times.step, times.end)
            canvas.box(canvas.x(at), y, canvas.x(end) - canvas.x(at) + 0.5, row * 0.92, heat(value))
    canvas.time_axis()
    _legend(canvas, [[(f"{part * 25} %", heat(part / 4), "") for part in range(5)]])
    return canvas.svg()


def _rows(
    all_series: Sequence[Series], times: TimeRange, width: int, height: int, legend: int
) -> tuple[Canvas, float]:
    longest = max(len(series.name) for series in all_series) * _LETTER + 12
    canvas = Canvas(width, height, min(longest, width / 2), _BOTTOM + _LEGEND * legend, times)
    return canvas, (canvas.floor - 4) / len(all_series)


def _spans(points: Sequence[Point], step: int) -> Iterator[tuple[float, float, float]]:
    """(start, end, value) of each stretch of time with one value."""
    for run in _runs(points, step):
        ends = [*(after for (_, _), (after, _) in pairwise(run)), run[-1][0] + step]
        timed = [(at, end, value) for (at, value), end in zip(run, ends, strict=True)]
        for value, group in groupby(timed, key=lambda item: item[2]):
            stretch = list(group)
            yield stretch[0][0], min(stretch[-1][1], points[-1][0]) or stretch[-1][1], value
