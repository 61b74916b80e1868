"""Looks of each kind of panel: the options that differ from Grafana's defaults."""

from __future__ import annotations

from collections.abc import Callable

from grafana_foundation_sdk.models import bargauge, common, heatmap, stat, statetimeline, table
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import timeseries as series

from gpuboot.monitoring.dashboards.spec import Panel, State, Steps

_LAST = common.ReduceDataOptions(calcs=["lastNotNull"], values=False, fields="")


def thresholds(steps: Steps) -> model.ThresholdsConfig:
    """Grafana's thresholds; without steps, everything is in the text's colour."""
    return model.ThresholdsConfig(
        model.ThresholdsMode.ABSOLUTE,
        [model.Threshold(value, colour) for value, colour in steps or ((None, "text"),)],
    )


def mapping(states: tuple[State, ...]) -> model.ValueMap:
    """Grafana's value mapping: each state's text and colour in place of its number."""
    return model.ValueMap(
        {
            str(state.value): model.ValueMappingResult(state.text, state.colour, index=index)
            for index, state in enumerate(states)
        }
    )


def _legend(panel: Panel) -> common.VizLegendOptions:
    has_legend = any("{{" in query.legend for query in panel.queries) or len(panel.queries) > 1
    return common.VizLegendOptions(
        common.LegendDisplayMode.LIST,
        common.LegendPlacement.BOTTOM,
        show_legend=has_legend,
        calcs=[],
    )


def _all_series() -> common.VizTooltipOptions:
    return common.VizTooltipOptions(common.TooltipDisplayMode.MULTI, common.SortOrder.DESCENDING)


def _stat(panel: Panel) -> stat.Options:
    return stat.Options(
        graph_mode=common.BigValueGraphMode.NONE,
        color_mode=common.BigValueColorMode.VALUE,
        reduce_options=_LAST,
    )


def _heatmap(panel: Panel) -> heatmap.Options:
    """Options of a heatmap: a line of cells for each series, values from 0 to 1."""
    return heatmap.Options(
        calculate=False,
        color=heatmap.HeatmapColorOptions(
            heatmap.HeatmapColorMode.SCHEME,
            "Viridis",
            "dark-orange",
            heatmap.HeatmapColorScale.LINEAR,
            0.5,
            64,
            min_val=0,
            max_val=1,
        ),
        cell_values=heatmap.CellValues(panel.unit),
        legend=heatmap.HeatmapLegend(show=True),
        rows_frame=heatmap.RowsHeatmapOptions(layout=common.HeatmapCellLayout.AUTO),
        tooltip=heatmap.HeatmapTooltip(common.TooltipDisplayMode.SINGLE),
    )


def _table(panel: Panel) -> table.Options:
    labels = [column.title for column in panel.columns if column.label]
    if panel.matrix:
        labels = [panel.matrix[0]]
    sort_keys = [(panel.sort, True)] if panel.sort else [(title, False) for title in labels[:2]]
    by = [common.TableSortByFieldState(title, desc) for title, desc in sort_keys]
    return table.Options(sort_by=by, cell_height=common.TableCellHeight.SM)


OPTIONS: dict[str, Callable[[Panel], object]] = {
    "timeseries": lambda panel: series.Options(legend=_legend(panel), tooltip=_all_series()),
    "stat": _stat,
    "table": _table,
    "state-timeline": lambda panel: statetimeline.Options(
        show_value=common.VisibilityMode.AUTO,
        legend=common.VizLegendOptions(show_legend=bool(panel.states), calcs=[]),
        tooltip=_all_series(),
    ),
    "heatmap": _heatmap,
    "bargauge": lambda panel: bargauge.Options(
        common.BarGaugeDisplayMode.BASIC,
        reduce_options=_LAST,
        orientation=common.VizOrientation.HORIZONTAL,
    ),
}


def _graph(panel: Panel) -> common.GraphFieldConfig:
    style = common.GraphThresholdsStyleMode
    stacking = common.StackingMode.NORMAL if panel.stacked else common.StackingMode.NONE
    return common.GraphFieldConfig(
        draw_style=common.GraphDrawStyle.BARS if panel.bars else common.GraphDrawStyle.LINE,
        line_width=1,
        fill_opacity=60 if panel.bars else 30 if panel.stacked else 0,
        show_points=common.VisibilityMode.NEVER,
        # a pause of the exporter is a gap, not a line through it
        span_nulls=False,
        stacking=common.StackingConfig(stacking, "A"),
        thresholds_style=common.GraphThresholdsStyleConfig(
            style.DASHED if panel.limit else style.OFF
        ),
    )


def _cells(panel: Panel) -> dict[str, object]:
    coloured = {"type": "color-background", "mode": "basic"} if panel.states else {"type": "auto"}
    # Grafana's default, 150 px, would push the last columns of most tables out of sight
    return {
        "align": "auto",
        "cellOptions": coloured,
        "filterable": not panel.matrix,
        "minWidth": 70,
    }


CUSTOM: dict[str, Callable[[Panel], object | None]] = {
    "timeseries": _graph,
    "stat": lambda panel: None,
    "table": _cells,
    "state-timeline": lambda panel: statetimeline.FieldConfig(fill_opacity=80),
    "heatmap": lambda panel: None,
    "bargauge": lambda panel: None,
}
