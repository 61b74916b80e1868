"""A dashboard as one HTML page: what Grafana would show, drawn by simpler means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from lab.dashboard_preview.graph import heatmap, lines, states
from lab.dashboard_preview.panels import Cell, Series, TimeRange, table
from lab.dashboard_preview.values import at_threshold, format_value, state

Object = dict[str, Any]
UNIT, GAP, MARGIN, COLUMNS = 38, 8, 12, 24  # px: height of a grid unit, gap, margin of the page
WIDTH = 1440
_LETTER_WIDTH = 0.62  # of a letter, as a share of its height

STYLE = f"""
body {{ background: #111217; color: #ccccdc; font: 12px Inter, Helvetica, Arial, sans-serif;
  margin: {MARGIN}px; }}
h1 {{ font-size: 18px; margin: 0 0 2px; }} p {{ margin: 0 0 10px; color: #8e8e9a; }}
.grid {{ display: grid; grid-template-columns: repeat({COLUMNS}, 1fr);
  grid-auto-rows: {UNIT - GAP}px; gap: {GAP}px; }}
.row {{ align-self: end; font-weight: 600; font-size: 14px; }}
.panel {{ background: #181b1f; border: 1px solid #24262b; border-radius: 2px; overflow: hidden; }}
.panel h2 {{ font-size: 12px; font-weight: 500; margin: 5px 8px 2px; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; height: 16px; }}
.body {{ padding: 0 8px; }}
.none {{ color: #6e6e7a; text-align: center; padding-top: 14px; font-size: 14px; }}
.stat {{ text-align: center; font-weight: 500; line-height: 64px; white-space: nowrap; }}
svg text {{ fill: #9fa2ad; font-size: 11px; }}
table {{ border-collapse: collapse; width: 100%; }}
th {{ text-align: left; color: #6e9fff; font-weight: 500; }}
th, td {{ padding: 3px 6px; border-bottom: 1px solid #24262b; white-space: nowrap; }}
th {{ white-space: normal; vertical-align: bottom; }}
td.cell {{ color: #111217; }}
.bar {{ background: #24262b; height: 12px; display: inline-block; width: 60px; }}
.bar i {{ display: block; height: 12px; background: #73bf69; }}
.gauge {{ display: flex; gap: 8px; align-items: center; margin: 4px 0; }}
.gauge .bar {{ flex: 1; }} .gauge span {{ min-width: 30px; }}
"""


def page(
    board: Object,
    all_series: dict[int, list[Series]],
    times: TimeRange,
    note: str,
    width: int = WIDTH,
) -> str:
    """The whole dashboard.

    + all_series: the panels' series, by panel id
    + note: where the data come from; stands at the page's top
    + width: of the page, in pixels
    """
    column = (width - 2 * MARGIN + GAP) / COLUMNS
    parts = [
        f"<!doctype html><meta charset='utf-8'><title>{escape(board['title'])}</title>",
        f"<style>{STYLE}</style><h1>{escape(board['title'])}</h1><p>{escape(note)}</p>",
        "<div class='grid'>",
    ]
    for panel in board["panels"]:
        place = _place(panel["gridPos"])
        if panel["type"] == "row":
            parts.append(f"<div class='row' style='{place}'>{escape(panel['title'])}</div>")
            continue
        body = _body(panel, all_series.get(panel["id"], []), times, column)
        title = f"<h2 title='{escape(panel['description'])}'>{escape(panel['title'])}</h2>"
        parts.append(
            f"<div class='panel' style='{place}'>{title}<div class='body'>{body}</div></div>"
        )
    return "".join([*parts, "</div>"])


def _place(at: Object) -> str:
    rows = f"grid-row:{at['y'] + 1}/span {at['h']}"
    return f"grid-column:{at['x'] + 1}/span {at['w']};{rows}"


def _body(panel: Object, all_series: Sequence[Series], times: TimeRange, column: float) -> str:
    if not all_series:
        empty = panel["fieldConfig"]["defaults"].get("noValue", "No data")
        return f"<div class='none'>{escape(empty)}</div>"
    at = panel["gridPos"]
    width, height = int(at["w"] * column) - GAP - 18, at["h"] * UNIT - GAP - 30
    if panel["type"] in _GRAPH_PANELS:
        return _GRAPH_PANELS[panel["type"]](panel, all_series, times, width, height)
    return _TEXT_PANELS[panel["type"]](panel, all_series, width)


def _stat(panel: Object, all_series: Sequence[Series], width: int) -> str:
    """The value with its unit, in letters that fit into the panel, as Grafana sizes them."""
    defaults = panel["fieldConfig"]["defaults"]
    ink = at_threshold(all_series[0].last, defaults["thresholds"])
    words = format_value(all_series[0].last, defaults["unit"], defaults.get("decimals"))
    size = min(44, round(width / len(words) / _LETTER_WIDTH))
    return f"<div class='stat' style='color:{ink};font-size:{size}px'>{escape(words)}</div>"


def _bars(panel: Object, all_series: Sequence[Series], width: int) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    maximum = defaults.get("max") or max(max(s.last for s in all_series), 1.0)
    return "".join(
        f"<div class='gauge'><span>{escape(series.name)}</span>"
        f"{_bar(series.last / maximum, at_threshold(series.last, defaults['thresholds']))}"
        f"<span>{escape(format_value(series.last, defaults['unit']))}</span></div>"
        for series in all_series
    )


def _bar(share: float, ink: str = "#73bf69") -> str:
    width = min(max(share, 0.0), 1.0) * 100
    return f"<span class='bar'><i style='width:{width:.0f}%;background:{ink}'></i></span>"


def _table(panel: Object, all_series: Sequence[Series], width: int) -> str:
    table_view = table(panel, all_series)
    fields = {heading: _field(panel, heading) for heading in table_view.headings}
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table_view.headings)
    rows = "".join(
        "<tr>"
        + "".join(
            _cell(cell, fields[heading])
            for heading, cell in zip(table_view.headings, row, strict=True)
        )
        + "</tr>"
        for row in table_view.rows
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _field(panel: Object, heading: str) -> Object:
    """How a column is shown: the panel's defaults under the column's own settings."""
    field = dict(panel["fieldConfig"]["defaults"])
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"]["options"] == heading:
            field |= {prop["id"]: prop["value"] for prop in override["properties"]}
    return field


def _cell(cell: Cell, field: Object) -> str:
    if cell is None:
        return "<td></td>"
    if isinstance(cell, str):
        ink = " style='color:#6e9fff'" if field.get("links") else ""
        return f"<td{ink}>{escape(cell)}</td>"
    mapped_state = state(cell, field.get("mappings"))
    if mapped_state:
        return (
            f"<td class='cell' style='background:{mapped_state[1]}'>{escape(mapped_state[0])}</td>"
        )
    words = escape(format_value(cell, field["unit"], field.get("decimals")))
    if field.get("custom.cellOptions", {}).get("type") == "gauge":
        return f"<td>{_bar(cell)} {words}</td>"
    return f"<td style='color:{at_threshold(cell, field.get('thresholds'))}'>{words}</td>"


_GRAPH_PANELS: dict[str, Callable[[Object, Sequence[Series], TimeRange, int, int], str]] = {
    "timeseries": lines,
    "state-timeline": states,
    "heatmap": heatmap,
}
_TEXT_PANELS: dict[str, Callable[[Object, Sequence[Series], int], str]] = {
    "stat": _stat,
    "bargauge": _bars,
    "table": _table,
}
