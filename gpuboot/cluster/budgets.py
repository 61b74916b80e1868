"""PodDisruptionBudgets: which pods each counts, and why it lets none go: pure judgements."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpuboot.cluster import selectors
from gpuboot.cluster.objects import Json
from gpuboot.cluster.pod_issues import pod_issue
from gpuboot.cluster.pods import Pod
from gpuboot.config.problems import join_first

_MAX_LISTED = 3


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget that lets no pod go now.

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


def blocking_budget(budget: Json, pod: Pod) -> Budget | None:
    """A budget that counts a pod and does not let it go now; None for one that does.

    Of a pod that is not Ready the Eviction API (pkg/registry/core/pod/storage/eviction.go) asks
    less.
    """
    status = budget.get("status", {})
    has_healthy_pods = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
    always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    if not pod.ready and (always or has_healthy_pods):
        return None
    return exhausted(budget)


def spares(pod: Pod) -> bool:
    """Whether the Eviction API asks no budget about a pod: it has not begun, or it ends."""
    return pod.going or pod.finished or pod.phase == "Pending"


def counts(budget: Json, pod: Pod) -> bool:
    """Whether a budget counts a pod. An empty selector counts all of its namespace."""
    return budget["metadata"]["namespace"] == pod.namespace and selectors.matches(
        budget["spec"].get("selector"), pod.labels
    )


def describe_budget(budget: Budget, pods: Iterable[Pod]) -> str:
    """Why a budget lets no pod go: which of those that it counts are not healthy, and why.

    + pods: all that it counts
    """
    pod_list = list(pods)
    # as the disruption controller counts them
    sick = [_sick(pod) for pod in pod_list if not pod.ready or pod.going]
    if not sick:
        return f"all pods that {budget.name} counts are Ready ({len(pod_list)}), and it needs each"
    return f"not Ready of the pods that {budget.name} counts: {join_first(sick, _MAX_LISTED)}"


def _sick(pod: Pod) -> str:
    issue = pod_issue(pod)
    reason = "is ending" if pod.going else (issue.reason if issue else "") or pod.phase
    return f"{pod.name} ({f'on {pod.node}' if pod.node else 'on no node'}): {reason}"
