"""Grafana dashboards as code."""

from __future__ import annotations

from typing import Any

from gpuboot.settings import Settings

Object = dict[str, Any]


def config_maps(settings: Settings) -> list[Object]:
    """One ConfigMap per dashboard, labelled for the sidecar of kube-prometheus-stack's Grafana."""
    return []
