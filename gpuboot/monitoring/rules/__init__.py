"""Recording rules and alerts, made from tables; deploys put them into the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpuboot.cluster.manifests import json_digest
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.alert import Alert, number
from gpuboot.monitoring.rules.catalogue import all_alerts, loaded_alerts, validate
from gpuboot.monitoring.rules.clusters import kept_apart
from gpuboot.monitoring.rules.record import Record
from gpuboot.monitoring.rules.recording import recordings
from gpuboot.monitoring.rules.requirements import (
    IN_CLUSTER,
    ON_DOCKER_HOSTS,
    Requirement,
    available_sources,
)

__all__ = [
    "IN_CLUSTER",
    "ON_DOCKER_HOSTS",
    "RULES_INFO_METRIC",
    "Alert",
    "Record",
    "Requirement",
    "all_alerts",
    "digest",
    "expression",
    "groups",
    "loaded_alerts",
    "prometheus_rule",
    "recordings",
    "validate",
]

Object = dict[str, Any]

# Sums over time of the allocation's records count minutes.
_INTERVALS = {"static": "1m", "gpus": "30s", "allocation": "1m", "applications": "30s"}
_ALERT_INTERVAL = "30s"

# Its label `digest` is of all our rules, thresholds included: Prometheus' value of it tells which
# of them are loaded.
RULES_INFO_METRIC = "cluster:gpuboot_rules:info"


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


def groups(
    settings: Settings, nodes: Sequence[Node], site: Requirement = IN_CLUSTER
) -> list[Object]:
    """The rule groups, as they stand in a rule file of Prometheus below `groups`.

    Without alerts (`alerts.enabled`) the recording rules stay: dashboards, queries and autoscalers
    read them.

    Clusters are kept apart, wherever series have a label `cluster`.

    + nodes: as for `prometheus_rule`
    + site: what there is beside exporters and Prometheus: rules that require more are left out
    """
    rule_groups: list[Object] = []
    sources = available_sources(site, settings)
    for name, records in recordings(settings, nodes).items():
        answered = [_record(record) for record in records if record.requires in sources]
        rule_groups += _group(name, _INTERVALS[name], answered)
    for name, alerts in loaded_alerts(settings, site).items():
        rule_groups += _group(name, _ALERT_INTERVAL, [_alert(alert, settings) for alert in alerts])
    labels = {"digest": json_digest(rule_groups)[:16]}
    info = {"record": RULES_INFO_METRIC, "expr": "vector(1)", "labels": labels}
    return [*rule_groups, *_group("info", _ALERT_INTERVAL, [info])]


def digest(rule_groups: Iterable[Object]) -> str:
    """The label `digest` that `groups` gave these rules: it differs with any of them."""
    rules = (rule for group in rule_groups for rule in group["rules"])
    info = next(rule for rule in rules if rule.get("record") == RULES_INFO_METRIC)
    return str(info["labels"]["digest"])


def expression(alert: Alert) -> str:
    """The alert's PromQL with its threshold in place."""
    if alert.threshold is None:
        return alert.expr
    return alert.expr.replace("{threshold}", number(alert.threshold))


def _group(name: str, interval: str, rules: list[Object]) -> Iterable[Object]:
    if rules:
        yield {"name": f"gpuboot-{name}", "interval": interval, "rules": rules}


def _record(record: Record) -> Object:
    rule: Object = {"record": record.name, "expr": kept_apart(record.expr)}
    if record.labels:
        rule["labels"] = dict(record.labels)
    return rule


def _alert(alert: Alert, settings: Settings) -> Object:
    rule: Object = {"alert": alert.name, "expr": kept_apart(expression(alert))}
    if alert.hold_for != "0s":
        rule["for"] = alert.hold_for
    if alert.keep_for:
        rule["keep_firing_for"] = alert.keep_for
    rule["labels"] = {
        **settings.alerts.labels,
        "severity": alert.severity,
        "component": alert.component,
        "gpu_action": alert.action,
    }
    rule["annotations"] = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": f"{settings.alerts.runbooks.rstrip('/')}/{alert.name}.md",
    }
    return rule
