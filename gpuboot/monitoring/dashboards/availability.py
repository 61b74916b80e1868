"""The part of a dashboard that a site can fill: nothing is shown that would stay empty."""

from __future__ import annotations

from dataclasses import replace

from gpuboot.monitoring.dashboards.spec import Dashboard, Panel, Row
from gpuboot.monitoring.dashboards.variables import VARIABLES
from gpuboot.monitoring.rules import Requirement


def available(board: Dashboard, site: Requirement) -> Dashboard | None:
    """The dashboard without what requires more than the site has; None when nothing is left.

    Variables without a choice are hidden and not removed: queries still ask for all of them.

    + site: what there is beside exporters and Prometheus
    """
    if board.requires not in site:
        return None
    rows = []
    for row in board.rows:
        if panels := tuple(
            available_panel for panel in row.panels if (available_panel := _panel(panel, site))
        ):
            rows.append(Row(row.title, panels))
    hidden = (name for name in board.variables if VARIABLES[name].requires not in site)
    return replace(board, rows=tuple(rows), hidden=tuple(hidden)) if rows else None


def _panel(panel: Panel, site: Requirement) -> Panel | None:
    if panel.requires not in site:
        return None
    queries = tuple(query for query in panel.queries if query.requires in site)
    columns = tuple(column for column in panel.columns if column.requires in site)
    reduced_panel = replace(panel, queries=queries, columns=columns)
    return reduced_panel if reduced_panel.expressions else None
