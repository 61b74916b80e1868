"""Recording rules and alerts, made from one table; deploys put them into the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuboot.nodes import Node
from gpuboot.rules.recording import Record, recordings
from gpuboot.settings import Settings

__all__ = ["Record", "groups", "prometheus_rule", "recordings"]

Object = dict[str, Any]

# A sum over time of the allocation's records counts minutes (facts for GPU hours).
_INTERVALS = {"static": "1m", "gpus": "30s", "allocation": "1m"}


def prometheus_rule(settings: Settings, nodes: Sequence[Node]) -> Object:
    """The PrometheusRule object with every group, for the monitoring namespace.

    + nodes: the inventory's nodes; their promised GPUs become the rule `node:gpu_expected:count`
    """
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "gpuboot",
            "namespace": settings.monitoring.namespace,
            "labels": {"app.kubernetes.io/managed-by": "gpuboot"},
        },
        "spec": {"groups": groups(settings, nodes)},
    }


def groups(settings: Settings, nodes: Sequence[Node]) -> list[Object]:
    """The rule groups, as they stand in a rule file of Prometheus."""
    return [
        {
            "name": f"gpuboot-{name}",
            "interval": _INTERVALS[name],
            "rules": [_record(record) for record in records],
        }
        for name, records in recordings(settings, nodes).items()
        if records
    ]


def _record(record: Record) -> Object:
    rule: Object = {"record": record.name, "expr": record.expr}
    if record.labels:
        rule["labels"] = dict(record.labels)
    return rule
