"""Everything of ours that stands in the cluster beside the charts: rules, dashboards, policies."""

from __future__ import annotations

from collections.abc import Sequence

from gpuboot import dashboards, netpolicies, rules
from gpuboot.charts.annotated import EXPORTER_NAMESPACE
from gpuboot.charts.scrape import exporter_objects
from gpuboot.manifests import Object
from gpuboot.nodes import Node
from gpuboot.settings import Settings


def objects(settings: Settings, nodes: Sequence[Node]) -> list[Object]:
    """The objects that these settings want.

    + nodes: the inventory's nodes
    """
    wanted = [
        *dashboards.config_maps(settings),
        *netpolicies.policies(settings, nodes),
        *exporter_objects(settings),
    ]
    if settings.alerts.enabled:
        wanted.append(rules.prometheus_rule(settings, nodes))
    return wanted


def namespaces(settings: Settings) -> list[str]:
    """Where such objects can be, so that what is no longer wanted is found and removed."""
    places = [settings.monitoring.namespace, settings.gpu_operator.namespace, EXPORTER_NAMESPACE]
    return list(dict.fromkeys(places))
