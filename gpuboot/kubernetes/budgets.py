"""PodDisruptionBudgets: which pods each counts, and why it lets none go: pure judgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.kubernetes import selectors
from gpuboot.kubernetes.pod_issues import pod_issue

Json = Mapping[str, Any]

_SHOWN = 3


@dataclass(frozen=True)
class Budget:
    """One that lets no pod go now.

    + healthy, needed: how many of its pods are Ready, and have to be
    + selector: of its pods, as `kubectl get --selector` takes it; "" for all of the namespace
    """

    namespace: str
    name: str
    healthy: int
    needed: int
    selector: str = ""

    def __str__(self) -> str:
        counts = f"{self.healthy} healthy, {self.needed} needed"
        return f"PodDisruptionBudget {self.namespace}/{self.name} ({counts})"


def exhausted(budget: Json) -> Budget | None:
    """A budget that lets no pod go now; None for one that does."""
    status, meta = budget.get("status", {}), budget["metadata"]
    if int(status.get("disruptionsAllowed", 0)) > 0:
        return None
    return Budget(
        meta["namespace"],
        meta["name"],
        status.get("currentHealthy", 0),
        status.get("desiredHealthy", 0),
        selectors.written(budget["spec"].get("selector") or {}),
    )


def counts(budget: Json, pod: Json) -> bool:
    """Whether a budget counts a pod. An empty selector counts all of its namespace."""
    meta = pod["metadata"]
    return budget["metadata"]["namespace"] == meta["namespace"] and selectors.matches(
        budget["spec"].get("selector"), meta.get("labels") or {}
    )


def told(budget: Budget, pods: Iterable[Json]) -> str:
    """Why a budget lets no pod go: which of those that it counts are not healthy, and why.

    + pods: all that it counts, as the API has them
    """
    found = list(pods)
    sick = [_sick(pod) for pod in found if not _healthy(pod)]
    if not sick:
        return f"all pods that {budget.name} counts are Ready ({len(found)}), and it needs each"
    more = f" and {len(sick) - _SHOWN} more" if len(sick) > _SHOWN else ""
    return f"not Ready of the pods that {budget.name} counts: {'; '.join(sick[:_SHOWN])}{more}"


def is_ready(item: Json) -> bool:
    """Whether a pod or a node says that it is Ready."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _healthy(pod: Json) -> bool:
    """As the disruption controller counts it: Ready, and not told to end."""
    return is_ready(pod) and "deletionTimestamp" not in pod["metadata"]


def _sick(pod: Json) -> str:
    meta, node = pod["metadata"], pod.get("spec", {}).get("nodeName")
    issue = pod_issue(pod)
    why = (issue.reason if issue else "") or pod.get("status", {}).get("phase", "")
    if "deletionTimestamp" in meta:
        why = "is ending"
    return f"{meta['name']} ({f'on {node}' if node else 'on no node'}): {why}"
