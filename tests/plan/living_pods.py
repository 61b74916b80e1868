"""Pods of the workers of the living site, as a drain is rehearsed with them."""

from __future__ import annotations

import re
from typing import Any

from tests.cluster_answers import listed, named, packed

_LABELS = {"app": "serve", "pod-template-hash": "5d"}
_OWNER = {"kind": "ReplicaSet", "name": "serve-5d", "controller": True}


def _pod(node: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "conditions": [ready]}
    found = named(f"serve-{node}", "ml", labels=_LABELS, spec={"containers": []}, status=status)
    found["metadata"]["ownerReferences"] = [_OWNER]
    return found


def _budget(healthy: int, needed: int, counted: int) -> dict[str, Any]:
    status = {
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": counted,
        "disruptionsAllowed": max(healthy - needed, 0),
    }
    selector = {"matchLabels": {"app": "serve"}}
    return named("serve", "ml", spec={"selector": selector}, status=status)


def pods_of_nodes(budget: str) -> dict[str | re.Pattern[str], list[str]]:
    """What the fact prints of one worker and of two. + budget: numbers of a budget; "": none"""
    budgets = [_budget(*map(int, budget.split()))] if budget else []

    def printed(*nodes: str) -> list[str]:
        bodies = {node: listed(_pod(node)) for node in nodes}
        return [*(f"node\t{node}" for node in nodes), *packed({**bodies, "": listed(*budgets)})]

    one = "spec.nodeName%3Dgpu1"
    return {
        re.compile(rf"{one}[\s\S]*spec.nodeName%3Dgpu2"): printed("gpu1", "gpu2"),
        one: printed("gpu1"),
    }
