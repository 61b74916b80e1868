"""Makes Grafana's dashboard model, by Grafana's own types, of our tables.

grafana-foundation-sdk is generated from Grafana's schemas, so names of keys, enumerations and
defaults are Grafana's; a release of it belongs to a release of Grafana, and newer ones migrate
older schemas. Its models, not its fluent builders: our panels are data, not call chains.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus

from gpuboot.monitoring.dashboards.kinds import CUSTOM, OPTIONS, mapping, thresholds
from gpuboot.monitoring.dashboards.spec import Column, Dashboard, Panel, Row
from gpuboot.monitoring.dashboards.variables import (
    ANNOTATION_TEXTS,
    DATASOURCE,
    TAG,
    annotation,
    links,
    row_url,
    variables,
)

Object = dict[str, Any]
WIDTH = 24
_KEEP_ALL: Object = {"excludeByName": {}, "indexByName": {}, "includeByName": {}}
_INSTANT = {"stat", "table", "bargauge"}


def build(board: Dashboard) -> Object:
    """The dashboard as Grafana's JSON."""
    dashboard = model.Dashboard(
        uid=board.uid,
        title=board.title,
        description=board.help,
        tags=[TAG, "gpu"],
        timezone="browser",
        editable=False,
        graph_tooltip=model.DashboardCursorSync.CROSSHAIR,
        time=model.DashboardDashboardTime(board.since, "now"),
        refresh="30s",
        panels=list(_layout(board.rows)),
        templating=model.DashboardDashboardTemplating(variables(board.variables, board.hidden)),
        annotations=model.AnnotationContainer([annotation(board.alerts)]),
        links=links(),
    )
    as_json: Object = json.loads(JSONEncoder().encode(dashboard))
    for mark in as_json["annotations"]["list"]:
        mark.update(ANNOTATION_TEXTS)
    return as_json


def _layout(rows: tuple[Row, ...]) -> Iterator[model.Panel | model.RowPanel]:
    """Headings and panels from left to right and top to bottom, numbered."""
    number, top = 1, 0
    for row in rows:
        yield model.RowPanel(
            title=row.title, id_val=number, grid_pos=model.GridPos(1, WIDTH, 0, top)
        )
        number, top, x, tallest = number + 1, top + 1, 0, 0
        for panel in row.panels:
            width, height = panel.size
            if x + width > WIDTH:
                x, top, tallest = 0, top + tallest, 0
            yield _panel(panel, number, model.GridPos(height, width, x, top))
            number, x, tallest = number + 1, x + width, max(tallest, height)
        top += tallest


def _panel(panel: Panel, number: int, place: model.GridPos) -> model.Panel:
    low, high = panel.range
    return model.Panel(
        panel.kind,
        number,
        title=panel.title,
        description=panel.help,
        datasource=DATASOURCE,
        grid_pos=place,
        targets=list(_targets(panel)),
        transformations=_transformations(panel) or None,
        options=OPTIONS[panel.kind](panel),
        field_config=model.FieldConfigSource(
            model.FieldConfig(
                unit=panel.unit,
                decimals=panel.decimals,
                min_val=low,
                max_val=high,
                thresholds=thresholds(panel.steps),
                mappings=[mapping(panel.states)] if panel.states else None,
                color=_colour(panel),
                no_value=panel.empty or None,
                custom=CUSTOM[panel.kind](panel),
            ),
            list(_overrides(panel)),
        ),
    )


def _colour(panel: Panel) -> model.FieldColor:
    by_value = panel.kind in {"stat", "table", "bargauge", "state-timeline"}
    mode = model.FieldColorModeId
    return model.FieldColor(mode.THRESHOLDS if by_value else mode.PALETTE_CLASSIC)


def _targets(panel: Panel) -> Iterator[prometheus.Dataquery]:
    legends = [query.legend for query in panel.queries]
    instant = panel.kind in _INSTANT
    for index, expr in enumerate(panel.expressions):
        yield prometheus.Dataquery(
            expr,
            instant=instant,
            range_val=not instant,
            format_val=prometheus.PromQueryFormat.TABLE
            if panel.kind == "table"
            else prometheus.PromQueryFormat.TIME_SERIES,
            legend_format=(legends[index] if index < len(legends) else "") or "__auto",
            ref_id=string.ascii_uppercase[index],
            datasource=DATASOURCE,
        )


def _transformations(panel: Panel) -> list[model.DataTransformerConfig]:
    """A table's transformations: queries' results joined by their labels, under our headings."""
    if panel.kind != "table":
        return []
    if panel.matrix:
        row, column = panel.matrix
        options = {"rowField": row, "columnField": column, "valueField": "Value"}
        # Grafana heads the first column with both names, a backslash between them.
        heading = {"renameByName": {f"{row}\\{column}": row}, **_KEEP_ALL}
        return [
            model.DataTransformerConfig("groupingToMatrix", options=options),
            model.DataTransformerConfig("organize", options=heading),
        ]
    headings = _headings(panel)
    organize = {
        "excludeByName": dict.fromkeys(["Time", *_hidden(panel, headings)], True),
        "indexByName": {name: index for index, name in enumerate(headings)},
        "renameByName": headings,
        "includeByName": {},
    }
    has_several_queries = len(panel.expressions) > 1
    merge = [model.DataTransformerConfig("merge", options={})] if has_several_queries else []
    return [*merge, model.DataTransformerConfig("organize", options=organize)]


def _hidden(panel: Panel, headings: dict[str, str]) -> Iterator[str]:
    hidden = {column.title for column in panel.columns if column.hidden}
    return (name for name, title in headings.items() if title in hidden)


def _headings(panel: Panel) -> dict[str, str]:
    """Grafana's name of each column -> ours. It numbers the values of several queries."""
    values = [column for column in panel.columns if column.expr]
    letters = dict(zip((c.title for c in values), string.ascii_uppercase, strict=False))
    is_single = len(values) == 1
    return {
        column.label or ("Value" if is_single else f"Value #{letters[column.title]}"): column.title
        for column in panel.columns
    }


# How the lines of a graph's second measure look, of its third, and so on: colours tell series
# apart, and there are not enough of them to tell measures apart as well.
_DASHES = ((), (8, 5), (2, 4), (12, 4, 2, 4))


def _overrides(panel: Panel) -> Iterator[model.DashboardFieldConfigSourceOverrides]:
    if panel.kind == "timeseries" and all("{{" in query.legend for query in panel.queries):
        for number, _ in enumerate(panel.queries[1:], 1):
            style = {"fill": "dash", "dash": list(_DASHES[number % len(_DASHES)])}
            yield model.DashboardFieldConfigSourceOverrides(
                model.MatcherConfig("byFrameRefID", string.ascii_uppercase[number]),
                [model.DynamicConfigValue("custom.lineStyle", style)],
            )
    headings = frozenset(column.title for column in panel.columns)
    for column in () if panel.matrix else panel.columns:
        if properties := list(_properties(column, headings)):
            yield model.DashboardFieldConfigSourceOverrides(
                model.MatcherConfig("byName", column.title), properties
            )


def _properties(column: Column, headings: frozenset[str]) -> Iterator[model.DynamicConfigValue]:
    if column.expr:
        yield model.DynamicConfigValue("unit", column.unit)
    if column.decimals is not None:
        yield model.DynamicConfigValue("decimals", column.decimals)
    if column.steps:
        yield model.DynamicConfigValue("thresholds", thresholds(column.steps))
    if column.states:
        yield model.DynamicConfigValue("mappings", [mapping(column.states)])
    if column.gauge:
        yield model.DynamicConfigValue("custom.cellOptions", {"type": "gauge", "mode": "basic"})
        yield model.DynamicConfigValue("min", 0)
        yield model.DynamicConfigValue("max", 1)
    elif column.steps or column.states:
        cell = "color-background" if column.states else "color-text"
        yield model.DynamicConfigValue("custom.cellOptions", {"type": cell, "mode": "basic"})
    if column.url:
        link = {"title": "Runbook", "url": column.url, "targetBlank": True}
        yield model.DynamicConfigValue("links", [link])
    if column.link:
        url = row_url(column.link, headings)
        link = {"title": f"Open {column.link}", "url": url, "targetBlank": False}
        yield model.DynamicConfigValue("links", [link])
