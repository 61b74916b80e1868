"""Alerts on the network inside the cluster: Services, and the names that lead to them."""

from __future__ import annotations

from gpuboot.cluster.service_scrape import JOB
from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.requirements import Requirement

_LAST = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
_QUEUED = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds"


_UNREACHABLE = Alert(
    name="ClusterServicesUnreachable",
    severity="critical",
    component="cluster",
    expr=f'max by (instance) (up{{job="{JOB}"}}) == 0',
    hold_for="5m",
    summary="Services cannot be reached by name from Prometheus' pod",
    description="{{ $labels.instance }} does not answer: either its name is not resolved, or its "
    "Service's address leads to no pod.",
    requires=Requirement.KUBERNETES,
)

_NOT_SYNCING = Alert(
    name="KubeProxyNotSyncing",
    severity="warning",
    component="cluster",
    expr=f"(time() - {_LAST} > {{threshold}})\n  and {_QUEUED} > {_LAST}",
    hold_for="5m",
    threshold=300,
    summary="kube-proxy on {{ $labels.instance }} does not write its rules",
    description="A change of Services has waited for {{ $value | humanizeDuration }}.",
    requires=Requirement.CONTROL_PLANE_TARGETS,
)

ALERTS = [_UNREACHABLE, _NOT_SYNCING]
