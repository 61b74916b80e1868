"""PodDisruptionBudgets: which pods each counts, and why it lets none go: pure judgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.kubernetes.cluster_answers import pod_issue

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
        _selector(budget["spec"].get("selector") or {}),
    )


def counts(budget: Json, pod: Json) -> bool:
    """Whether a budget counts a pod. An empty selector counts all of its namespace."""
    if budget["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    selector = budget["spec"].get("selector")
    if selector is None:
        return False
    labels = pod["metadata"].get("labels") or {}
    equal = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in equal) and all(
        _matches(item, labels) for item in selector.get("matchExpressions") or []
    )


def _matches(expression: Json, labels: Json) -> bool:
    value = labels.get(expression["key"])
    values = expression.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[expression["operator"]]


def _selector(selector: Json) -> str:
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for item in selector.get("matchExpressions") or []:
        key, values = item["key"], ",".join(item.get("values") or [])
        parts.append({
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }[item["operator"]])  # fmt: skip
    return ",".join(parts)


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


def _healthy(pod: Json) -> bool:
    """As the disruption controller counts it: Ready, and not told to end."""
    conditions = pod.get("status", {}).get("conditions", [])
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _sick(pod: Json) -> str:
    meta, node = pod["metadata"], pod.get("spec", {}).get("nodeName")
    issue = pod_issue(pod)
    why = (issue.reason if issue else "") or pod.get("status", {}).get("phase", "")
    if "deletionTimestamp" in meta:
        why = "is ending"
    return f"{meta['name']} ({f'on {node}' if node else 'on no node'}): {why}"
