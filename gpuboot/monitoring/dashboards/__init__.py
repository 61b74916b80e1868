"""Grafana dashboards as code: six, written as tables of panels.

Their queries read the recording rules of `gpuboot.monitoring.rules`, fields that the exporter
collects by default, and kube-state-metrics' series; tests hold them to it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from gpuboot.config.settings import Settings
from gpuboot.monitoring.dashboards import health_dashboard, namespace_dashboard
from gpuboot.monitoring.dashboards.applications_dashboard import APPLICATIONS
from gpuboot.monitoring.dashboards.availability import available
from gpuboot.monitoring.dashboards.build import build
from gpuboot.monitoring.dashboards.cluster_dashboard import CLUSTER
from gpuboot.monitoring.dashboards.node_dashboard import NODE
from gpuboot.monitoring.dashboards.profile_dashboard import PROFILE
from gpuboot.monitoring.dashboards.spec import Dashboard, Panel
from gpuboot.monitoring.rules import IN_CLUSTER, Requirement

__all__ = ["boards", "config_maps", "dashboards"]

Object = dict[str, Any]
FOLDER = "GPU"


def boards(settings: Settings) -> tuple[Dashboard, ...]:
    """The dashboards as our own tables."""
    tables = (
        CLUSTER,
        NODE,
        PROFILE,
        namespace_dashboard.board(settings.cost),
        health_dashboard.board(settings.alerts),
        APPLICATIONS,
    )
    return tuple(_with_runbooks(board, settings.alerts.runbooks) for board in tables)


def _with_runbooks(board: Dashboard, runbooks: str) -> Dashboard:
    """The dashboard whose alerts lead to their runbooks, where these have an address."""
    if not runbooks.startswith(("https://", "http://")):
        return board

    def led(panel: Panel) -> Panel:
        url = f"{runbooks.rstrip('/')}/${{__data.fields.Alert}}.md"
        return replace(
            panel,
            columns=tuple(
                replace(column, url=url) if column.label == "alertname" else column
                for column in panel.columns
            ),
        )

    return replace(
        board,
        rows=tuple(replace(row, panels=tuple(map(led, row.panels))) for row in board.rows),
    )


def dashboards(settings: Settings, site: Requirement = IN_CLUSTER) -> dict[str, Object]:
    """uid -> dashboard in Grafana's JSON model, e.g. for files that Grafana is provisioned from.

    + site: what there is beside exporters and Prometheus: what requires more is left out
    """
    available_boards = (available(board, site) for board in boards(settings))
    return {board.uid: build(board) for board in available_boards if board}


def config_maps(settings: Settings) -> list[Object]:
    """A ConfigMap per dashboard, labelled for the sidecar of kube-prometheus-stack's Grafana."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"gpuboot-dashboard-{uid}",
                "namespace": settings.monitoring.namespace,
                "labels": {"grafana_dashboard": "1", "app.kubernetes.io/managed-by": "gpuboot"},
                "annotations": {"grafana_folder": FOLDER},
            },
            "data": {f"{uid}.json": _indented(json.dumps(dashboard))},
        }
        for uid, dashboard in dashboards(settings).items()
    ]


@cache
def _indented(text: str) -> str:
    """The same JSON for people: Python's encoder indents, and a run asks for it several times."""
    return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
