"""Nodes that an upgrade takes out of service, and lets in again when they are proven.

In between a node is cordoned. One that is not proven has its reason as annotation, and a taint by
which nobody's `kubectl uncordon` lets pods in; the next run takes both away when it begins, so that
pods of DaemonSets can come back, and the cordon when the node is proven. A person's cordon stays.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyinfra import logger
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine.commands import failure, report_failure
from deploys.engine.remote import RemoteError, run
from deploys.engine.waiting import unfinished, wait_until
from deploys.parts.cluster import cordon
from deploys.parts.cluster.api_silence import explained, lacks
from deploys.parts.cluster.kubectl import KUBECTL
from deploys.parts.cluster.node_drain import DrainRefusedError, drain
from gpuboot.cluster import node_upgrade
from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.readiness import Progress

STARTED_MARK = "/etc/gpuboot/kubernetes-node-upgrade.started"
_API_S = 120
# the GPUs of the current host that were there before -> cause and remedy where they are not proven
Proof = Callable[[Sequence[str]], tuple[str, str] | None]


def take_out(
    state: State, host: Host, node: str, leader: str, without_api: bool, moved: Mapping[str, Any]
) -> bool:
    """Cordon a node and move its pods away; a FunctionCommand's body. False: it failed.

    + without_api: go on where the API server does not answer: this host may be the one it runs on
    + moved: how pods are moved: arguments of `drain`; nothing: they stay
    """
    lead = state.inventory.get_host(leader)
    try:
        if problem := _silent(lead):
            if not without_api:
                return report_failure(host, problem)
            logger.warning(f"{host.print_prefix}{node} is not cordoned: {problem.splitlines()[0]}")
            return True
        is_own_cordon = cordon.cordon(lead, node, host)
        unmark(lead, node)
        if moved:
            drain(lead, node, **moved)
    except DrainRefusedError as error:
        if is_own_cordon:
            cordon.uncordon(lead, node, host)
        run(host, f"rm -f {STARTED_MARK}")
        return report_failure(host, str(error))
    except RemoteError as error:
        return report_failure(host, str(error))
    return True


def let_in(state: State, host: Host, node: str, leader: str) -> bool:
    """End what `take_out` began; a FunctionCommand's body. False: it failed."""
    lead = state.inventory.get_host(leader)
    try:
        if problem := _silent(lead):
            return report_failure(host, problem)
        unmark(lead, node)
        if cordon.by_gpuboot(host):
            cordon.uncordon(lead, node, host)
        run(host, f"rm -f {STARTED_MARK}")
    except RemoteError as error:
        return report_failure(host, str(error))
    return True


def proven(
    state: State, host: Host, node: str, proof: Proof, gpus: Sequence[str], before: str
) -> bool:
    """A FunctionCommand's body. False: the node's GPUs are not proven. + before: what it ran"""
    try:
        problem = proof(gpus)
    except (RemoteError, ClusterError) as error:
        problem = str(error), "see whether the API server answers"
    if problem is None:
        return True
    cause, remedy = problem
    return report_failure(
        host,
        failure(
            f"{node} is not proven after its upgrade: {cause}",
            f"{remedy}; then run again to go on. To go back, ask for {before} and run",
        ),
    )


def keep_out(leader: Host, node: str, reason: str) -> None:
    """Taint a node that is not proven, with the reason as annotation.

    Raises `RemoteError` when the cluster does not answer.
    """
    name = shlex.quote(node)
    text = shlex.quote(f"{node_upgrade.KEY}={node_upgrade.annotation(reason)}")
    run(leader, f"{KUBECTL} annotate --overwrite node {name} {text}")
    run(leader, f"{KUBECTL} taint --overwrite node {name} {node_upgrade.TAINT}")


def unmark(leader: Host, node: str) -> None:
    """Take away what `keep_out` put there; the cordon stays."""
    name, key = shlex.quote(node), node_upgrade.KEY
    keys = "'jsonpath={.spec.taints[*].key}'"
    if key in run(leader, f"{KUBECTL} get node {name} --ignore-not-found -o {keys}").split():
        run(leader, f"{KUBECTL} taint node {name} {key}-")
        run(leader, f"{KUBECTL} annotate node {name} {key}-")


def _silent(leader: Host) -> str:
    """Why the API server does not answer, with what to do; "" when it does."""

    def probe() -> Progress:
        try:
            run(leader, f"{KUBECTL} --request-timeout=5s get --raw /readyz")
        except RemoteError:
            silent = Progress(False, "the API server does not answer")
            return explained(silent, lacks(leader), leader)
        return Progress(True, "the API server answers")

    end = wait_until(leader, probe, _API_S)
    remedy = f"see `journalctl -u kubelet` and `crictl ps -a` on {leader.name}, then run again"
    return "" if end.complete else failure(*unfinished(end, _API_S, remedy))
