"""Moves the pods of a node elsewhere, so that it is empty for an upgrade or a removal."""

import json
import shlex
from dataclasses import asdict, dataclass
from typing import Any

from pyinfra import logger
from pyinfra.api.host import Host

from deploys.engine.commands import failure
from deploys.engine.remote import RemoteError, read_fact, run
from deploys.engine.waiting import unfinished, wait_until
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.cluster.pods_fact import NodePods
from gpuboot.cluster import budgets
from gpuboot.cluster import drain as rules
from gpuboot.cluster.budgets import Budget
from gpuboot.cluster.node_upgrade import Drain
from gpuboot.cluster.pods import parse_pod
from gpuboot.cluster.readiness import Progress

# kubectl waits so long at a time; in between the person hears how far it is
_STEP_S = 10


class DrainRefusedError(RemoteError):
    """Pods may not be ended: none was, and the node is as it was."""


@dataclass(frozen=True)
class Moving:
    """What becomes of a node's pods while it is out of service; see `settings.upgrade`."""

    drain: Drain = "when-needed"
    timeout_s: int = 600
    empty_dirs: bool = True
    unmanaged: bool = False

    def moved(self) -> dict[str, Any]:
        """How they are moved away: arguments of the function `drain`."""
        return {name: value for name, value in asdict(self).items() if name != "drain"}


def drain(
    leader: Host, node: str, timeout_s: float, empty_dirs: bool = True, unmanaged: bool = True
) -> None:
    """Cordon a node and evict its pods; those of DaemonSets and static ones stay.

    It stays cordoned afterwards, whether it ends well or not. Disruption budgets are respected: a
    pod that may not go is waited for, and named with its owner and its budget.

    + leader: where kubectl runs
    + timeout_s: for all of its pods together
    + empty_dirs: pods with data in an emptyDir may be ended; it ends with them
    + unmanaged: pods that no controller makes again may be ended

    Raises `RemoteError` with cause and remedy.
    """
    before = _cordoned(leader, node, empty_dirs, unmanaged)
    logger.info(f"{leader.print_prefix}draining {node}: {len(before.leaving)} pods")
    options = rules.options(before, empty_dirs, unmanaged)
    evict = f"{KUBECTL} drain {shlex.quote(node)} {options} --timeout={_STEP_S}s"

    def probe() -> Progress:
        try:
            run(leader, evict)
        except RemoteError as error:
            message = str(error).strip().splitlines()[-1]
            return rules.progress(pods(leader, node), len(before.leaving), message)
        return Progress(True, f"node {node} is drained: {len(before.leaving)} pods have left")

    end = wait_until(leader, probe, timeout_s)
    if not end.complete:
        reason = unfinished(end, timeout_s, "")[0]
        cause = f"node {node} is not drained, and stays cordoned: {reason}"
        remaining_pods = pods(leader, node)
        raise RemoteError(
            failure(
                f"{cause}{_of_budgets(leader, remaining_pods)}", rules.remedy(remaining_pods, node)
            )
        )


def _of_budgets(leader: Host, remaining_pods: rules.NodePods) -> str:
    """Why the budgets that keep pods on a node let none go."""
    blocking_budgets = dict.fromkeys(
        budget for pod in remaining_pods.leaving for budget in pod.held_by
    )
    return "".join(f"; {_of_budget(leader, budget)}" for budget in blocking_budgets)


def _of_budget(leader: Host, budget: Budget) -> str:
    selector = f"--selector {shlex.quote(budget.selector)}" if budget.selector else ""
    query = (
        f"{KUBECTL} get pods --namespace {shlex.quote(budget.namespace)} {selector} --output json"
    )
    try:
        return budgets.describe_budget(
            budget, map(parse_pod, json.loads(run(leader, query))["items"])
        )
    except RemoteError as error:
        return f"which pods {budget.name} counts is not known: {error}"


def _cordoned(leader: Host, node: str, empty_dirs: bool, unmanaged: bool) -> rules.NodePods:
    """The pods of a node that takes no more of them. Raises `DrainRefusedError`.

    They are looked at when it is cordoned already: no other can come that may not be ended.
    """
    name = shlex.quote(node)
    query = f"{KUBECTL} get node {name} -o 'jsonpath={{.spec.unschedulable}}'"
    was = run(leader, query).strip() == "true"
    run(leader, f"{KUBECTL} cordon {name}")
    node_pods = pods(leader, node)
    if forbidden_pods := rules.forbidden(node_pods, empty_dirs, unmanaged):
        if not was:
            run(leader, f"{KUBECTL} uncordon {name}")
        cause = f"node {node} is not drained: {'; '.join(forbidden_pods)}"
        remedy = (
            "end these pods yourself, or allow that (upgrade.drain_empty_dirs, "
            "upgrade.drain_unmanaged), then run again"
        )
        raise DrainRefusedError(failure(cause, remedy))
    return node_pods


def pods(leader: Host, node: str) -> rules.NodePods:
    """What runs on a node. Raises `RemoteError` when the API server does not answer."""
    node_pods = read_fact(leader, NodePods, kubeconfig=ADMIN_CONF, node=node)
    if node_pods.error:
        raise RemoteError(f"the API server does not answer: {node_pods.error}")
    return node_pods
