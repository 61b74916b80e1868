"""What keeps pods on the nodes that a run is going to drain, before the first: pure judgements.

A PodDisruptionBudget that is busy is waited for by the drain. One that lets no pod go however long
one waits would end the run when a part of the nodes is done.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuboot.cluster.budgets import Budget
from gpuboot.cluster.drain import NodePods, Pod, forbidden
from gpuboot.config.problems import Problem, join_first

_MAX_LISTED = 5
_ALTERNATIVE = 'or have no pods moved (upgrade.drain = "never"), then run again'


@dataclass(frozen=True, kw_only=True)
class PlannedDrain:
    """A drain that a run is going to make.

    + host: inventory name of the node
    + timeout_s: how long its pods may take to leave
    + empty_dirs, unmanaged: which pods may be ended, as `drain.forbidden` has it
    + shares: it is upgraded, and could come to share its GPUs otherwise in the same stay
    """

    host: str
    timeout_s: float
    empty_dirs: bool
    unmanaged: bool
    shares: bool = False


Drains = dict[str, PlannedDrain]  # by the node's name in Kubernetes
Pods = dict[str, NodePods]  # likewise


def problems(drains: Drains, pods: Pods) -> list[Problem]:
    """What ends a drain without success whenever it comes. Nodes that are not in `pods` pass."""
    return [
        *_of_budgets(drains, pods),
        *_of_several(drains, pods),
        *(
            Problem(
                plan.host,
                f"node {node}, which this run drains, has pods that may not be ended: "
                f"{join_first(forbidden_pods, _MAX_LISTED)}",
                "end these pods yourself, or allow that (upgrade.drain_empty_dirs, "
                f"upgrade.drain_unmanaged), {_ALTERNATIVE}",
            )
            for node, plan in drains.items()
            if (forbidden_pods := forbidden(_of(pods, node), plan.empty_dirs, plan.unmanaged))
        ),
    ]


def busy(drains: Drains, pods: Pods) -> dict[str, list[str]]:
    """Node -> its pods that could not leave it now, each with why; a drain waits for them."""
    waiting = {
        node: [
            _waits(pod, budget)
            for pod in _of(pods, node).leaving
            for budget in pod.held_by
            if len(pod.budgets) == 1 and not _blocks(budget)
        ]
        for node in drains
    }
    return {node: lines for node, lines in waiting.items() if lines}


def warnings(drains: Drains, pods: Pods) -> list[str]:
    """Lines about pods that a drain would wait for now, and about nodes that nobody could ask."""
    unknown = {pods[node].error: node for node in reversed(drains) if _of(pods, node).error}
    return [
        *(
            f"[{drains[node].host}] node {node} is drained later in this run, which waits for at "
            f"most {drains[node].timeout_s:.0f} s; now {join_first(lines, _MAX_LISTED)}; "
            "remedy: see to these budgets before"
            for node, lines in busy(drains, pods).items()
        ),
        *(
            f"[{drains[node].host}] whether pods may leave node {node} is not known before it is "
            f"drained: {error}"
            for error, node in unknown.items()
        ),
    ]


def _of(pods: Pods, node: str) -> NodePods:
    return pods.get(node, NodePods())


def _blocks(budget: Budget) -> bool:
    """Whether a budget ends a drain: an operator that made one may move its pods itself."""
    return bool(budget.never) and not budget.maker


def _of_budgets(drains: Drains, pods: Pods) -> Iterator[Problem]:
    pods_by_budget: dict[Budget, dict[str, str]] = defaultdict(dict)
    owners: dict[Budget, dict[str, None]] = defaultdict(dict)
    for node, pod in _pods(drains, pods):
        for budget in pod.held_by if len(pod.budgets) == 1 else ():
            if _blocks(budget):
                pods_by_budget[budget][f"{pod} on {node}"] = node
                owners[budget][pod.owner or str(pod)] = None
    for budget, pod_nodes in pods_by_budget.items():
        first = next(iter(pod_nodes.values()))
        yield Problem(
            drains[first].host,
            f"PodDisruptionBudget {budget.namespace}/{budget.name} lets no pod go however long one "
            f"waits: {budget.never}; so this run cannot drain {_names(pod_nodes.values())}, where "
            f"it keeps {join_first(list(pod_nodes), _MAX_LISTED)}",
            f"{_way_out(budget, list(owners[budget]))}, {_ALTERNATIVE}",
        )


def _way_out(budget: Budget, owners: Sequence[str]) -> str:
    edit = f"kubectl --namespace {budget.namespace} edit poddisruptionbudget {budget.name}"
    if budget.failed:
        # of pods without a controller that has a scale, Kubernetes counts by a number alone
        return f"give the budget a number as minAvailable, below that of its pods ({edit})"
    if budget.fixed:
        pods = join_first(owners, _MAX_LISTED)
        return f"give {pods} another replica, or the budget a lower minAvailable ({edit})"
    return f"have the budget spare a pod, such as by maxUnavailable: 1 ({edit})"


def _of_several(drains: Drains, pods: Pods) -> Iterator[Problem]:
    for node, pod in _pods(drains, pods):
        if len(pod.budgets) > 1:
            yield Problem(
                drains[node].host,
                f"{pod} cannot leave node {node}, which this run drains: several "
                f"PodDisruptionBudgets count it ({', '.join(pod.budgets)}), and the Eviction API "
                "lets no such pod go",
                f"leave it one of them (kubectl --namespace {pod.namespace} delete "
                f"poddisruptionbudget NAME), {_ALTERNATIVE}",
            )


def _pods(drains: Drains, pods: Pods) -> Iterator[tuple[str, Pod]]:
    for node in drains:
        for pod in _of(pods, node).leaving:
            yield node, pod


def _waits(pod: Pod, budget: Budget) -> str:
    text = f"{pod} is kept by {budget}"
    if budget.unseen:
        text += ", which Kubernetes has not looked at since it changed"
    if budget.never:
        text += f" ({budget.never}), unless {budget.maker}, which made it, moves it"
    return text


def _names(nodes: Iterable[str]) -> str:
    names = list(dict.fromkeys(nodes))
    return f"node{'s' * (len(names) > 1)} {', '.join(names)}"
