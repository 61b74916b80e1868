"""Everything of ours that stands in the cluster beside the charts: rules, dashboards, policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuboot.cluster.manifests import Object, digests
from gpuboot.cluster.values import Values
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.monitoring import dashboards, network_policies, rules
from gpuboot.monitoring.charts.monitoring_values import GRAFANA_NAME, STACK, monitoring_values
from gpuboot.monitoring.charts.service_monitors import EXPORTER_NAMESPACE
from gpuboot.monitoring.stack_objects import ExpectedObjects


def objects(settings: Settings, nodes: Sequence[Node]) -> list[Object]:
    """The objects that these settings name.

    + nodes: the inventory's nodes
    """
    return [
        *dashboards.config_maps(settings),
        *network_policies.policies(settings, nodes),
        rules.prometheus_rule(settings, nodes),
    ]


def expectation(
    settings: Settings, nodes: Sequence[Node], ranges: Mapping[str, Sequence[str]] | None = None
) -> ExpectedObjects:
    """What verification is to find.

    + ranges: as `netpolicies.reached` takes them
    """
    values = monitoring_values(settings)
    groups = rules.groups(settings, nodes)
    return ExpectedObjects(
        objects=digests(network_policies.reached(objects(settings, nodes), ranges or {})),
        groups=_names(groups),
        alertmanager=_alertmanager(values).get("config") or {},
        claims=_claims(settings, values),
        state_metrics=values.get("kubeStateMetrics", {}).get("enabled", True),
        node_exporter=values.get("nodeExporter", {}).get("enabled", True),
        rules_digest=rules.digest(groups),
    )


def _names(groups: Sequence[Object]) -> dict[str, tuple[str, ...]]:
    return {
        group["name"]: tuple(rule.get("alert") or rule["record"] for rule in group["rules"])
        for group in groups
    }


def _alertmanager(values: Values) -> Values:
    alertmanager: Values = values.get("alertmanager", {})
    return alertmanager if alertmanager.get("enabled", True) else {}


def _claims(settings: Settings, values: Values) -> dict[str, str]:
    """Beginning of a claim's name -> its size, as StatefulSets and charts name them."""
    templates = {
        f"prometheus-{STACK}-prometheus-db-": values["prometheus"]["prometheusSpec"].get(
            "storageSpec"
        ),
        f"alertmanager-{STACK}-alertmanager-db-": (
            _alertmanager(values).get("alertmanagerSpec", {}).get("storage")
        ),
    }
    sizes = {
        prefix: template["volumeClaimTemplate"]["spec"]["resources"]["requests"]["storage"]
        for prefix, template in templates.items()
        if template and "volumeClaimTemplate" in template
    }
    grafana = values["grafana"]
    if grafana["enabled"] and grafana.get("persistence", {}).get("enabled"):
        sizes[GRAFANA_NAME] = grafana["persistence"]["size"]
    return sizes


def namespaces(settings: Settings) -> list[str]:
    """Where such objects can be, so that what the settings no longer name is found and removed."""
    places = [settings.monitoring.namespace, settings.gpu_operator.namespace, EXPORTER_NAMESPACE]
    return list(dict.fromkeys(places))
