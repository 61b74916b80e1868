"""Dashboards for hosts without Kubernetes: what nobody could fill there is left out."""

from __future__ import annotations

import re
from dataclasses import replace

from gpuboot.dashboards.spec import Dashboard, Panel, Row
from gpuboot.telemetry.expressions import metric_names

# kube-state-metrics' series, and what is recorded from them
_KUBERNETES = re.compile(r"kube_|.*:gpu_(capacity|allocatable|requested|allocation):")
# labels that only pods and Kubernetes' objects have
_LABELS = {"namespace", "pod", "label_team"}


def without_kubernetes(board: Dashboard) -> Dashboard | None:
    """The dashboard without what kube-state-metrics tells; None when nothing is left of it."""
    rows = []
    for row in board.rows:
        panels = tuple(left for panel in row.panels if (left := _panel(panel)))
        if panels:
            rows.append(Row(row.title, panels))
    about_pods = board.variables[:1] == ("namespace",)
    return None if about_pods else replace(board, rows=tuple(rows))


def _panel(panel: Panel) -> Panel | None:
    queries = tuple(query for query in panel.queries if _answered(query.expr))
    columns = tuple(
        column
        for column in panel.columns
        if (_answered(column.expr) if column.expr else column.label not in _LABELS)
    )
    left = replace(panel, queries=queries, columns=columns)
    return left if left.expressions else None


def _answered(expr: str) -> bool:
    return 'pod!=""' not in expr and not any(map(_KUBERNETES.match, metric_names(expr)))
