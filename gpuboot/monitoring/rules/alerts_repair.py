"""Alerts on repairs of GPU nodes: one under way, one that is stuck, and a stop of all of them."""

from __future__ import annotations

from gpuboot.cluster.repair_keys import BREAKER, STOP, TAINT_KEY
from gpuboot.monitoring.rules.alert import OWN_SOURCE, VERIFY, Alert
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
        action="none",
        expr=f'max by (node) (kube_node_spec_taint{{key="{TAINT_KEY}"}}) == 1',
        summary="{{ $labels.node }} is under repair",
        description="It has the quarantine taint; its other GPU alerts are muted meanwhile.",
        meaning=f"The node carries the taint `{TAINT_KEY}`: it is out of service on purpose.",
        reason="It mutes the alerts that a repair causes, and shows that one is under way.",
        check=("`kubectl describe node NODE | grep -A3 Taints`",),
        remedy=("None. GPURepairStuck fires when it takes too long.",),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
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
        meaning="A repair takes minutes to an hour; this one has stopped somewhere.",
        reason="The node's alerts are muted while it lasts.",
        check=("What it waits for: `gpuboot remediate INVENTORY`",
               "What was done: `kubectl describe node NODE`",
               "What still runs there: `kubectl get pods -A -o wide "
               "--field-selector spec.nodeName=NODE`"),
        remedy=("A pod that cannot be evicted: its PodDisruptionBudget; talk to its owner.",
                "Repaired by hand: " + VERIFY + f" Then `kubectl taint node NODE {TAINT_KEY}-`."),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
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
        meaning=f"The ConfigMap `{BREAKER}` exists in `kube-system`: within "
        "`remediate.breaker_window_s` so many nodes asked for a repair that the cause is hardly "
        "a GPU.",
        reason="No GPU node is repaired meanwhile, however long that lasts.",
        check=(f"Why it opened: `kubectl -n kube-system get configmap {BREAKER} "
               "-o jsonpath='{.data.why}'`",
               "What would be repaired: `gpuboot remediate INVENTORY`"),
        remedy=("Look for what the nodes share: power, cooling, a switch, a driver upgrade.",
                f"When that is mended: `kubectl -n kube-system delete configmap {BREAKER}`; the "
                "next run of the timer goes on."),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
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
        meaning=f"The ConfigMap `{STOP}` exists in `kube-system`.",
        reason="A stop that is forgotten leaves broken GPUs in service.",
        check=(f"Who and why: `kubectl -n kube-system get configmap {STOP} -o yaml`",),
        remedy=(f"`kubectl -n kube-system delete configmap {STOP}`",
                "Repairs are to stay off: silence this alert."),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
]  # fmt: skip
