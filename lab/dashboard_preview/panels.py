"""What Grafana does with a dashboard before it draws: variables, queries, tables' rows.

The lab has no Grafana. This reads a dashboard's JSON as Grafana would, as far as our dashboards
go: variables in queries, the transformations merge, organize and groupingToMatrix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

Object = dict[str, Any]
ALL = ".*"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*))")  # "$1" is PromQL\'s


@dataclass(frozen=True)
class TimeRange:
    """A dashboard's time range. start, end: unix seconds; step: seconds between points."""

    start: float
    end: float
    step: int

    def variables(self, scrape_s: int) -> dict[str, str]:
        """Grafana's own variables. + scrape_s: the data source's scrape interval, in seconds"""
        return {
            "__range": f"{round(self.end - self.start)}s",
            "__rate_interval": f"{max(self.step + scrape_s, 4 * scrape_s)}s",
            "__interval": f"{self.step}s",
        }


@dataclass(frozen=True)
class Series:
    """A series of an answer: its name by the target's legend, labels, (time, value) points."""

    name: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    ref: str = "A"

    @property
    def last(self) -> float:
        return self.points[-1][1]


# expression, is it instant? -> (labels, points) of each series
Query = Callable[[str, bool], list[tuple[dict[str, str], list[tuple[float, float]]]]]


class UnknownVariable(ValueError):
    """A query names a variable that the dashboard does not have."""


def interpolate(expr: str, values: Mapping[str, str]) -> str:
    """`expr` with each variable's value in its place. Raises `UnknownVariable`."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in values:
            raise UnknownVariable(f"${name} in {expr!r}")
        return values[name]

    return _VARIABLE.sub(value, expr)


def names(text: str) -> set[str]:
    """Variables that a text names."""
    return {match[1] or match[2] for match in _VARIABLE.finditer(text)}


def defaults(board: Object) -> dict[str, str]:
    """The dashboard's variables as they are when it is opened: everything chosen."""
    return {
        variable["name"]: variable.get("allValue", ALL)
        for variable in board["templating"]["list"]
        if variable["type"] == "query"
    }


def panels(board: Object) -> list[Object]:
    """The panels of a dashboard, without the headings of its rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def query_panel(panel: Object, values: Mapping[str, str], query: Query) -> list[Series]:
    """All series of a panel's queries."""
    return [
        Series(_name(target, labels), labels, points, target["refId"])
        for target in panel["targets"]
        for labels, points in query(
            interpolate(target["expr"], values), bool(target.get("instant"))
        )
        if points
    ]


def _name(target: Object, labels: Mapping[str, str]) -> str:
    legend = target.get("legendFormat", "__auto")
    if legend == "__auto":
        return ", ".join(labels.values()) or str(target["refId"])
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda m: labels.get(m[1], ""), legend).strip()


Cell = str | float | None
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """Headings, and rows with one cell for each."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table(panel: Object, all_series: Sequence[Series]) -> Table:
    """A table panel's rows after its transformations."""
    has_several = len(panel["targets"]) > 1
    rows: Rows = [
        {**series.labels, f"Value #{series.ref}" if has_several else "Value": series.last}
        for series in all_series
    ]
    for step in panel.get("transformations", []):
        rows = _STEPS[step["id"]](rows, step["options"])
    order = {name: number for number, name in enumerate(_order_of(panel))}
    headings = tuple(
        sorted(
            dict.fromkeys(name for row in rows for name in row),
            key=lambda name: order.get(name, len(order)),
        )
    )
    for by in reversed(panel["options"].get("sortBy") or []):
        rows.sort(key=partial(_order, by["displayName"]), reverse=by["desc"])
    return Table(headings, tuple(tuple(row.get(name) for name in headings) for row in rows))


def _order_of(panel: Object) -> list[str]:
    """Headings in the order that the panel gives them."""
    options = panel["transformations"][-1]["options"]
    return [options["renameByName"].get(name, name) for name in options.get("indexByName", {})]


def _order(heading: str, row: Mapping[str, Cell]) -> tuple[float, str]:
    cell = row.get(heading)
    return (cell, "") if isinstance(cell, int | float) else (float("-inf"), cell or "")


def _merge(rows: Rows, options: Object) -> Rows:
    """Rows that agree in all labels they share become one, as long as no value meets another."""
    merged: Rows = []
    for row in rows:
        for into in merged:
            shared = row.keys() & into.keys()
            if shared and all(row[name] == into[name] for name in shared):
                into.update(row)
                break
        else:
            merged.append(dict(row))
    return merged


def _organize(rows: Rows, options: Object) -> Rows:
    order = options["indexByName"]
    return [
        {
            options["renameByName"].get(name, name): row[name]
            for name in sorted(row, key=lambda name: order.get(name, len(order)))
            if not options["excludeByName"].get(name)
        }
        for row in rows
    ]


def _matrix(rows: Rows, options: Object) -> Rows:
    row_field, column_field = options["rowField"], options["columnField"]
    by_row: dict[str, dict[str, Any]] = {}
    for row in rows:
        cells = by_row.setdefault(row[row_field], {f"{row_field}\\{column_field}": row[row_field]})
        cells[row[column_field]] = row[options["valueField"]]
    return list(by_row.values())


_STEPS: dict[str, Callable[[Rows, Object], Rows]] = {
    "merge": _merge,
    "organize": _organize,
    "groupingToMatrix": _matrix,
}
