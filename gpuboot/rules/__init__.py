"""Recording rules and alerts, made from one table; deploys put them into the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuboot.nodes import Node
from gpuboot.settings import Settings

Object = dict[str, Any]


def prometheus_rule(settings: Settings, nodes: Sequence[Node]) -> Object:
    """The PrometheusRule object with every group, for the monitoring namespace.

    + nodes: the inventory's nodes; their promised GPUs become the rule `node:gpu_expected:count`
    """
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "gpuboot", "namespace": settings.monitoring.namespace},
        "spec": {"groups": groups(settings, nodes)},
    }


def groups(settings: Settings, nodes: Sequence[Node]) -> list[Object]:
    """The rule groups, as they stand in a rule file of Prometheus."""
    return []
