"""PodDisruptionBudgets: which pods each counts, and why it lets none go: pure judgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.cluster import selectors
from gpuboot.cluster.pod_issues import pod_issue

Json = Mapping[str, Any]

_MAX_LISTED = 3


@dataclass(frozen=True)
class Budget:
    """One that lets no pod go now.

    + healthy, needed: how many of its pods are Ready, and have to be
    + selector: of its pods, as `kubectl get --selector` takes it; "" for all of the namespace
    + expected: how many pods it counts; 0: not told
    + fixed: it needs a fixed number of pods, so that one more makes room
    + failed: why Kubernetes cannot work out its status; "" where it can
    + unseen: Kubernetes has not worked out its status since it changed
    + maker: what made it and looks after it, e.g. `Cluster db`; "" for a person
    """

    namespace: str
    name: str
    healthy: int
    needed: int
    selector: str = ""
    expected: int = 0
    fixed: bool = False
    failed: str = ""
    unseen: bool = False
    maker: str = ""

    def __str__(self) -> str:
        counts = f"{self.healthy} healthy, {self.needed} needed"
        return f"PodDisruptionBudget {self.namespace}/{self.name} ({counts})"

    @property
    def never(self) -> str:
        """Why it lets no pod go however long one waits; "" where it may."""
        if self.failed:
            return f"Kubernetes cannot work out its status: {self.failed}"
        if self.expected and self.needed >= self.expected and not self.unseen:
            many = "s" * (self.needed > 1)
            return f"it needs {self.needed} healthy pod{many}, and counts {self.expected}"
        return ""


def exhausted(budget: Json) -> Budget | None:
    """A budget that lets no pod go now; None for one that does."""
    status, meta = budget.get("status", {}), budget["metadata"]
    unseen = status.get("observedGeneration", 0) < meta.get("generation", 0)
    if int(status.get("disruptionsAllowed", 0)) > 0 and not unseen:
        return None
    conditions = status.get("conditions") or ()
    failed = [
        entry.get("message", "") for entry in conditions if entry.get("reason") == "SyncFailed"
    ]
    makers = [f"{entry['kind']} {entry['name']}" for entry in meta.get("ownerReferences") or ()]
    return Budget(
        meta["namespace"],
        meta["name"],
        status.get("currentHealthy", 0),
        status.get("desiredHealthy", 0),
        selectors.format_selector(budget["spec"].get("selector") or {}),
        expected=status.get("expectedPods", 0),
        fixed=isinstance(budget["spec"].get("minAvailable"), int),
        failed=failed[0] if failed else "",
        unseen=unseen,
        maker=", ".join(makers),
    )


def blocking_budget(budget: Json, pod: Json) -> Budget | None:
    """A budget that counts a pod and does not let it go now; None for one that does.

    Of a pod that is not Ready the Eviction API (pkg/registry/core/pod/storage/eviction.go) asks
    less.
    """
    status = budget.get("status", {})
    has_healthy_pods = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
    always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    if not is_ready(pod) and (always or has_healthy_pods):
        return None
    return exhausted(budget)


def spares(pod: Json) -> bool:
    """Whether the Eviction API asks no budget about a pod: it has not begun, or it ends."""
    ends = "deletionTimestamp" in pod["metadata"]
    return ends or pod.get("status", {}).get("phase") in ("Pending", "Succeeded", "Failed")


def counts(budget: Json, pod: Json) -> bool:
    """Whether a budget counts a pod. An empty selector counts all of its namespace."""
    meta = pod["metadata"]
    return budget["metadata"]["namespace"] == meta["namespace"] and selectors.matches(
        budget["spec"].get("selector"), meta.get("labels") or {}
    )


def describe_budget(budget: Budget, pods: Iterable[Json]) -> str:
    """Why a budget lets no pod go: which of those that it counts are not healthy, and why.

    + pods: all that it counts, as the API has them
    """
    pod_list = list(pods)
    sick = [_sick(pod) for pod in pod_list if not _healthy(pod)]
    if not sick:
        return f"all pods that {budget.name} counts are Ready ({len(pod_list)}), and it needs each"
    suffix = f" and {len(sick) - _MAX_LISTED} more" if len(sick) > _MAX_LISTED else ""
    return (
        f"not Ready of the pods that {budget.name} counts: {'; '.join(sick[:_MAX_LISTED])}{suffix}"
    )


def is_ready(item: Json) -> bool:
    """Whether a pod or a node says that it is Ready."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def _healthy(pod: Json) -> bool:
    """As the disruption controller counts it: Ready, and not told to end."""
    return is_ready(pod) and "deletionTimestamp" not in pod["metadata"]


def _sick(pod: Json) -> str:
    meta, node = pod["metadata"], pod.get("spec", {}).get("nodeName")
    issue = pod_issue(pod)
    reason = (issue.reason if issue else "") or pod.get("status", {}).get("phase", "")
    if "deletionTimestamp" in meta:
        reason = "is ending"
    return f"{meta['name']} ({f'on {node}' if node else 'on no node'}): {reason}"
