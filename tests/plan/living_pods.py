"""Pods of the workers of the living site, as a drain is rehearsed with them."""

from __future__ import annotations

import re
from typing import Any

from tests.cluster_answers import item_list, make_object, packed

_LABELS = {"app": "serve", "pod-template-hash": "5d"}
_OWNER = {"kind": "ReplicaSet", "name": "serve-5d", "controller": True}


def _pod(node: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "conditions": [ready]}
    pod = make_object(f"serve-{node}", "ml", labels=_LABELS, spec={"containers": []}, status=status)
    pod["metadata"]["ownerReferences"] = [_OWNER]
    return pod


def _budget(healthy: int, needed: int, counted: int) -> dict[str, Any]:
    status = {
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": counted,
        "disruptionsAllowed": max(healthy - needed, 0),
    }
    selector = {"matchLabels": {"app": "serve"}}
    return make_object("serve", "ml", spec={"selector": selector}, status=status)


def pods_of_nodes(budget: str) -> dict[str | re.Pattern[str], list[str]]:
    """What the fact prints of one worker and of two. + budget: numbers of a budget; "": none"""
    budgets = [_budget(*map(int, budget.split()))] if budget else []

    def output_lines(*nodes: str) -> list[str]:
        bodies = {node: item_list(_pod(node)) for node in nodes}
        return [*(f"node\t{node}" for node in nodes), *packed({**bodies, "": item_list(*budgets)})]

    selector = "spec.nodeName%3Dgpu1"
    return {
        re.compile(rf"{selector}[\s\S]*spec.nodeName%3Dgpu2"): output_lines("gpu1", "gpu2"),
        selector: output_lines("gpu1"),
    }
