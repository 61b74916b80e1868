"""Alerts on repairs of GPU nodes: one under way, one that is stuck, and a stop of all of them."""

from __future__ import annotations

from gpuboot.cluster.repair_keys import BREAKER, STOP, TAINT_KEY
from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.requirements import Requirement


def _exists(config_map: str) -> str:
    return (
        "max by (configmap) "
        f'(kube_configmap_info{{namespace="kube-system", configmap="{config_map}"}}) == 1'
    )


ALERTS = [
    Alert(
        name="GPUNodeUnderRepair",
        severity="info",
        component="cluster",
        expr=f'max by (node) (kube_node_spec_taint{{key="{TAINT_KEY}"}}) == 1',
        summary="{{ $labels.node }} is under repair",
        description="It has the quarantine taint; its other GPU alerts are muted meanwhile.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPURepairStuck",
        severity="warning",
        component="cluster",
        action="investigate",
        expr=f'max by (node) (kube_node_spec_taint{{key="{TAINT_KEY}"}}) == 1',
        hold_for="6h",
        summary="The repair of {{ $labels.node }} takes too long",
        description="It has been in quarantine for six hours.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPURepairBreakerOpen",
        severity="warning",
        component="cluster",
        action="investigate",
        expr=_exists(BREAKER),
        summary="Repairs of GPU nodes have stopped: the breaker is open",
        description="Many GPU nodes asked for a repair at once, so no repair begins until a "
        "person closes the breaker.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPURepairsSwitchedOff",
        severity="warning",
        component="cluster",
        action="investigate",
        expr=_exists(STOP),
        hold_for="24h",
        summary="A person has stopped all repairs of GPU nodes for a day",
        description="No GPU node is repaired until the ConfigMap is deleted.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
]
