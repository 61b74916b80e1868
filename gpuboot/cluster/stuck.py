"""What keeps a workload from being ready, and whether waiting longer can help.

Nothing is certain from one look: a Secret may come a second later, an image may be pulled. So each
reason has a time that it must have lasted while nothing in the cluster got ready.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpuboot.cluster import refusals
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.workloads import Workload

# for what does not change by itself
CERTAIN_S = 30.0
# for what may still be waiting for something else, and while something else is starting
UNCERTAIN_S, WHILE_OTHERS_START_S = 45.0, 150.0
_IMAGE_S = 40.0
_YOUNG_S = 600.0  # an older pod that is not ready is not "starting"
_FORGOTTEN_S = 20.0  # between two crashes a container runs for a while

# what a registry says of an image that it will not give; other errors are of networks, and pass
_NO_IMAGE = re.compile(
    r"not found|manifest unknown|unauthorized|denied|forbidden|no match for platform"
    r"|InvalidImageName|ErrImageNeverPull|invalid reference",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"nvidia\.com/|unbound|not-ready|unreachable|uninitialized|failed calling webhook"
)

_UNNAMED = "correct or remove what refuses them"
# nobody opens by himself what a person or a run has cordoned
_CLOSED = ("node.kubernetes.io/unschedulable", "node-role.kubernetes.io/control-plane")

# the pod network comes after the node, and its own pods tell what is wrong with it
_NETWORK = re.compile(r"cni|[Nn]etwork")


@dataclass(frozen=True)
class Stuck:
    """Why something cannot get ready.

    + subject: what it is about
    + cause: in the words of Kubernetes
    + after_s: how long that must have lasted without progress
    + remedy: what a person can do about it
    + settled: what gets ready elsewhere cannot change it
    """

    subject: str
    cause: str
    after_s: float
    remedy: str
    settled: bool = False

    def __str__(self) -> str:
        return f"{self.subject}: {self.cause}"


def starting(state: ClusterState) -> bool:
    """Whether any pod may only need more time."""
    return any(
        issue.kind in ("", "creating") and state.clock - issue.created < _YOUNG_S
        for issue in state.pod_issues
    )


def of_workload(item: Workload, state: ClusterState) -> list[Stuck]:
    """What keeps a workload that is not ready from it. [] where it may only need more time."""
    issues = [issue for issue in state.pod_issues if belongs(issue, item)]
    reasons = [of_pod(issue, state) for issue in issues if issue.kind != "refused"]
    if item.missing > 0 and item.observed:
        reasons.append(_of_missing(item, issues, state))
    return [reason for reason in reasons if reason is not None]


def of_absent(namespace: str, name: str, state: ClusterState, certain: bool) -> Stuck:
    """The reason that a workload does not exist. + certain: nothing makes it while a run waits"""
    after_s = CERTAIN_S if certain else UNCERTAIN_S + WHILE_OTHERS_START_S * starting(state)
    return Stuck(
        f"{namespace}/{name}",
        "it does not exist, and nothing makes it",
        after_s,
        f"see `kubectl -n {namespace} get events` and what should make {name}",
    )


def of_nodes(state: ClusterState, names: Sequence[str]) -> tuple[Stuck, ...]:
    """A reason for each node whose kubelet does not report, or says it can run no containers."""
    return tuple(
        _of_rejected(node.name, state.rejection)
        if state.rejection
        else Stuck(
            f"node {node.name}",
            node.message if not node.ready and node.message else "its kubelet does not report",
            UNCERTAIN_S,
            f"see `systemctl status kubelet containerd` and `journalctl -u kubelet` on {node.name};"
            " `gpuboot diagnose INVENTORY` names what refuses its reports",
        )
        for node in state.nodes
        if node.name in names
        and (state.is_silent(node) or not (node.ready or _NETWORK.search(node.message)))
    )


def _of_rejected(node: str, message: str) -> Stuck:
    """The reason that the API server refuses a kubelet's reports. + message: the server's own"""
    return Stuck(
        f"node {node}",
        f"the API server refuses its kubelet's reports: {message}",
        CERTAIN_S,
        refusals.remedy(message, "kube-node-lease") or "mend what the API server's message names",
    )


def after_reboot(node: str, cause: str) -> Stuck:
    """The reason that a booted node does not join the cluster again. + cause: the cluster's

    Its pod network is started by a pod, whose image may have to be pulled again.
    """
    return Stuck(
        f"node {node}",
        cause,
        WHILE_OTHERS_START_S if _NETWORK.search(cause) else UNCERTAIN_S,
        f"see `systemctl status kubelet containerd` and `journalctl -u kubelet` on {node}",
    )


def counts(issue: PodIssue, late: Iterable[Workload]) -> bool:
    """Whether an issue is of now: an event that pods were refused outlives that.

    + late: workloads that are not ready
    """
    if issue.kind != "refused":
        return True
    return any(item.missing > 0 and belongs(issue, item) for item in late)


def is_away(pod: PodIssue, item: Workload, state: ClusterState) -> bool:
    """Whether this is a StatefulSet's pod on a node that is away."""
    owner, _, ordinal = pod.pod.rpartition("-")
    is_owner = (pod.namespace, owner) == (item.namespace, item.name) and ordinal.isdecimal()
    return is_owner and pod.node in state.absent


def belongs(issue: PodIssue, item: Workload) -> bool:
    """Whether an issue is of a pod of this workload."""
    same_namespace = issue.namespace == item.namespace
    return same_namespace and (issue.pod == item.name or issue.pod.startswith(f"{item.name}-"))


def _of_missing(item: Workload, issues: Iterable[PodIssue], state: ClusterState) -> Stuck:
    """The reason that a workload's pods are not made, with the event or condition that says why."""
    events = [issue.reason for issue in issues if issue.kind == "refused"]
    target = f"-n {item.namespace} {item.kind.lower()}/{item.name}"
    if cause := next(iter(events), item.refusal):
        passes = _PASSES.search(cause)
        return Stuck(
            f"{item.namespace}/{item.name}",
            f"its pods are refused: {cause}",
            _uncertain_s(state) if passes else CERTAIN_S,
            f"{refusals.remedy(cause, item.namespace) or _UNNAMED}; the cluster tries again by "
            f"itself, or at once after `kubectl rollout restart {target}`",
        )
    return Stuck(
        f"{item.namespace}/{item.name}",
        f"{item.missing} of its pods are not made, and no event says why",
        _uncertain_s(state),
        "see the log of kube-controller-manager: `kubectl -n kube-system logs -l "
        "component=kube-controller-manager`",
    )


def _uncertain_s(state: ClusterState) -> float:
    return WHILE_OTHERS_START_S if starting(state) else UNCERTAIN_S


def of_pod(issue: PodIssue, state: ClusterState) -> Stuck | None:
    """What keeps a pod from being ready; None where it may only need more time."""
    if issue.kind in ("", "creating") or not issue.reason:
        return None
    if issue.kind == "crash" and issue.crash is not None and issue.crash.count < 2:
        return None
    after_s = _uncertain_s(state)
    cordoned = _waits_for_cordoned(issue, state)
    if cordoned:
        after_s = CERTAIN_S
    elif issue.kind == "image":
        after_s = _IMAGE_S if _NO_IMAGE.search(issue.reason) else WHILE_OTHERS_START_S
    elif issue.kind == "unscheduled" and (
        _PASSES.search(issue.reason) or not all(node.ready for node in state.nodes)
    ):
        after_s = WHILE_OTHERS_START_S
    place = f" on {issue.node}" if issue.node else ""
    subject = f"{issue.namespace}/{issue.pod}{place}"
    return Stuck(subject, issue.reason, after_s, _remedy(issue), settled=cordoned)


def of_job(issue: PodIssue, state: ClusterState) -> Stuck | None:
    """What keeps a Job from ending: an issue of its pod, or of its own where pods are refused."""
    if issue.kind != "refused":
        return of_pod(issue, state)
    return Stuck(
        f"{issue.namespace}/{issue.pod}",
        f"its pods are refused: {issue.reason}",
        _uncertain_s(state) if _PASSES.search(issue.reason) else CERTAIN_S,
        refusals.remedy(issue.reason, issue.namespace) or _UNNAMED,
    )


def _waits_for_cordoned(issue: PodIssue, state: ClusterState) -> bool:
    """Whether a pod has no node because all are cordoned, or control planes."""
    closed = [any(taint.startswith(_CLOSED) for taint in node.taints) for node in state.nodes]
    is_unschedulable = issue.kind == "unscheduled" and "were unschedulable" in issue.reason
    return is_unschedulable and bool(closed) and all(closed)


def _remedy(issue: PodIssue) -> str:
    pod = f"-n {issue.namespace} {issue.pod}"
    if issue.kind == "unscheduled":
        return (
            "give it a node: `kubectl get nodes` shows cordoned ones, `kubectl describe node` "
            "their taints and what is in use"
        )
    if issue.kind == "image":
        return f"see that {issue.node} can pull the image: `crictl pull` it there"
    if issue.kind == "crash":
        return f"see what it said: `kubectl logs --previous {pod}`"
    return f"see `kubectl describe pod {pod}`, and make what it lacks"


@dataclass
class Patience:
    """How long the reasons of one wait have lasted without progress."""

    _since: dict[str, float] = field(default_factory=dict)
    _last_observed: dict[str, float] = field(default_factory=dict)
    _best: float = -math.inf

    def over(self, reasons: Sequence[Stuck], ready: int, now: float) -> list[Stuck]:
        """The reasons that have lasted for their time without progress.

        + ready: how much is ready: more than ever before is progress
        + now: monotonic seconds
        """
        if ready > self._best:
            self._best = ready
            settled = {_key(item) for item in reasons if item.settled}
            self._since = {key: at for key, at in self._since.items() if key in settled}
        present = set(map(_key, reasons))
        for key, last_observed in list(self._last_observed.items()):
            if key not in present and now - last_observed > _FORGOTTEN_S:
                self._since.pop(key, None)
                del self._last_observed[key]
        for item in reasons:
            self._last_observed[_key(item)] = now
            self._since.setdefault(_key(item), now)
        return [item for item in reasons if now - self._since[_key(item)] >= item.after_s]


def _key(item: Stuck) -> str:
    """The subject without a pod's random suffix: a pod that is made anew has another one."""
    return re.sub(r"-[a-z0-9]{5}( on |$)", r"\1", item.subject)
