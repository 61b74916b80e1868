"""GPUs of nodes in use that are shared in another way: out of service, changed, proven, let in.

A MIG layout cannot change under a program on the GPU, and a pod that was given a whole GPU would
share it with others without knowing. So a node is drained before, by the rules of upgrades.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host as current_host

from deploys.engine import answers, planned_drains
from deploys.engine.commands import failure, report_failure
from deploys.engine.remote import RemoteError, read_fact, run
from deploys.engine.waiting import unfinished, wait_or_fail, wait_until
from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.cluster.pods_fact import GpuPods
from deploys.parts.containerd.operations import CDI_SPEC
from deploys.parts.nodes import node_service
from gpuboot.cluster import offers
from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.readiness import Progress, held_up
from gpuboot.cluster.stuck import Stuck, of_pod
from gpuboot.hosts import gpu_sharing
from gpuboot.hosts.gpu_sharing import Offer

# names no UUIDs: a layout makes new ones
Proof = Callable[[Sequence[str]], tuple[str, str] | None]
Look = Callable[[ClusterState], Progress]
MIG_MANAGER = "nvidia-mig-manager"
_OFFERING = (MIG_MANAGER, "nvidia-device-plugin-daemonset")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A node whose GPUs are to be shared in another way.

    + node: its name in Kubernetes; host: its inventory name
    + offer: what it is to offer then
    + moved: tells how its pods are moved away: arguments of `drain`; nothing: they stay
    + proof: proves its GPUs
    """

    node: str
    host: str
    offer: Offer
    moved: Callable[[], Mapping[str, Any]] = dict
    proof: Proof | None = None


@dataclass(frozen=True)
class Sharing:
    """What the GPUs of a node are to offer, and how long it may take until they do."""

    offer: Offer
    timeout_s: float


def operands_ready(
    state: State,
    host: Host,
    look: Look,
    timeout_s: float,
    kept_out: Sequence[str] = (),
    changing: Sequence[str] = (),
) -> bool:
    """Wait until the GPU Operator has the new configurations in its pods; a command's body.

    + look: how far it is
    + kept_out: nodes that an earlier run tainted, which are to have such pods again
    + changing: nodes whose sharing is about to change; what they hold up is not waited for
    """
    try:
        for node in kept_out:
            node_service.unmark(host, node)
    except RemoteError as error:
        return report_failure(host, str(error))

    def probe() -> Progress:
        issues = read_fact(host, PodIssues, kubeconfig=ADMIN_CONF)
        return look(held_up(replace(_cluster(host), pod_issues=issues), changing, MIG_MANAGER))

    remedy = "see the pods of the GPU Operator's namespace, then run again"
    return wait_or_fail(host, probe, timeout_s, remedy)


def changed(
    state: State, host: Host, turn: Turn, labels: Mapping[str, str | None], timeout_s: float
) -> bool:
    """Share the GPUs of a node in use in another way; a FunctionCommand's body on the leader.

    What it has begun, the next run's upgrade of nodes finds by its mark, and proves. A node that
    does not come to offer what it should, or is not proven, stays cordoned with the reason.

    + labels: those to set; None: to take away
    + timeout_s: how long the new offer may take
    """
    target = state.inventory.get_host(turn.host)
    try:
        run(target, f"mkdir -p /etc/gpuboot && touch {node_service.STARTED_MARK}")
        if not node_service.take_out(state, target, turn.node, host.name, False, turn.moved()):
            cause = f"the GPUs of {turn.node} stay as they are: its pods could not be moved away"
            return report_failure(host, failure(cause, "see what was said of it, then run again"))
        holders = read_fact(host, GpuPods, node=turn.node)
        if holders is None:
            raise RemoteError("the API server does not tell which pods hold GPUs; run again")
        if holders:
            node_service.let_in(state, target, turn.node, host.name)
            return report_failure(host, _describe_holders(turn.node, holders))
        run(host, label_command(turn.node, labels))
        problem = _settled(host, turn, timeout_s)
        if problem is None:
            _describe(target, labels)
            problem = _proven(turn)
        if problem:
            node_service.keep_out(host, turn.node, problem[0])
            return report_failure(host, failure(f"{turn.node}: {problem[0]}", problem[1]))
    except RemoteError as error:
        return report_failure(host, str(error))
    return node_service.let_in(state, target, turn.node, host.name)


def upgraded(state: State, host: Host, node: str, leader: str, shares: Sharing) -> bool:
    """Share the GPUs of a node in another way while it is away for its upgrade; a command's body.

    Where pods hold some of them, or the leader has failed, nothing is done: the phase of sharing
    tells of it.
    """
    lead = state.inventory.get_host(leader)
    if lead in state.failed_hosts:
        return True
    turn = Turn(node=node, host=host.name, offer=shares.offer)
    try:
        labels = due(node, leader, shares.offer)
        holders = read_fact(lead, GpuPods, node=node)
        if holders is None:
            raise RemoteError("the API server does not tell which pods hold GPUs; run again")
        if holders or not labels:
            return True
        run(lead, label_command(node, labels))
        if problem := _settled(lead, turn, shares.timeout_s):
            return report_failure(host, failure(*problem))
        _describe(host, labels)
    except RemoteError as error:
        return report_failure(host, str(error))
    return True


def _describe(target: Host, labels: Mapping[str, str | None]) -> None:
    """Have the host's CDI specification name the instances of a new layout.

    Neither the MIG manager nor nvidia-cdi-refresh does so (NVIDIA Container Toolkit v1.20.1,
    "Support for Container Device Interface").
    """
    if {gpu_sharing.MIG_LABEL, gpu_sharing.MIG_STATE} & set(labels):
        run(target, f"nvidia-ctk cdi generate --output {CDI_SPEC}")


def _settled(host: Host, turn: Turn, timeout_s: float) -> tuple[str, str] | None:
    """Cause and remedy where a node does not come to offer what it should."""

    def probe() -> Progress:
        cluster = _cluster(host)
        node = next((item for item in cluster.nodes if item.name == turn.node), None)
        missing = cluster.error or offers.offer_problem(node, turn.offer)
        if not missing:
            return Progress(True, f"{turn.node}: offers its GPUs as it should")
        reasons = _pods_in_trouble(host, cluster, turn.node)
        return Progress(
            False,
            "; ".join([f"{turn.node}: {missing}", *map(str, reasons)]),
            failed=node is not None and offers.given_up(node.labels, turn.offer),
            stuck=reasons,
        )

    end = wait_until(host, probe, timeout_s)
    if end.complete:
        return None
    log = (
        "see the log of its pod of nvidia-mig-manager or nvidia-device-plugin-daemonset, "
        "then run again"
    )
    return unfinished(end, timeout_s, log)


def _pods_in_trouble(host: Host, state: ClusterState, node: str) -> tuple[Stuck, ...]:
    """What keeps the pods that offer the GPUs of a node from being ready."""
    issues = read_fact(host, PodIssues, kubeconfig=ADMIN_CONF)
    own_issues = [
        issue for issue in issues if issue.node == node and issue.pod.startswith(_OFFERING)
    ]
    return tuple(reason for item in own_issues if (reason := of_pod(item, state)))


def _proven(turn: Turn) -> tuple[str, str] | None:
    """Cause and remedy where its GPUs are not proven."""
    try:
        return turn.proof([]) if turn.proof else None
    except (RemoteError, ClusterError) as error:
        return str(error), "see whether the API server answers, then run again"


def pending(node: str, leader: str, offer: Offer) -> bool:
    """Whether labels of a node still ask for another way of sharing, e.g. a MIG layout that failed.

    A proof that expects the new way would wait in vain. + leader: its inventory name
    """
    target = current_host.state.inventory.hosts.get(leader)
    nodes = _cluster(target).nodes if target else ()
    return any(offers.label_changes(item.labels, offer) for item in nodes if item.name == node)


def of_stay(node: str, leader: str, shares: Sharing | None) -> dict[str, str | None]:
    """The labels that are `due`, where they can change while a node is away for its upgrade.

    Preflight finds that out, once all operations have been compared.
    """
    now = answers.comparing() or node in planned_drains.sharing
    return due(node, leader, shares.offer) if shares and now else {}


def due(node: str, leader: str, offer: Offer) -> dict[str, str | None]:
    """Labels to change on a node that offers GPUs, or did. + leader: its inventory name"""
    target = current_host.state.inventory.hosts.get(leader)
    nodes = _cluster(target).nodes if target else ()
    matches = [item for item in nodes if item.name == node and offers.has_offered(item)]
    return offers.label_changes(matches[0].labels, offer) if matches else {}


def _cluster(leader: Host) -> ClusterState:
    return read_fact(leader, Cluster, kubeconfig=ADMIN_CONF)


def _describe_holders(node: str, pods: Sequence[str]) -> str:
    return failure(
        f"the GPUs of {node} stay as they are: {', '.join(pods)} still hold some",
        "end these pods, or let gpuboot move them away (upgrade.drain), then run again",
    )


def label_command(node: str, labels: Mapping[str, str | None]) -> str:
    """The command that sets labels of a node. + labels: None: to take away

    The MIG manager looks at its label when that has another value, and when it starts: so to have
    a layout tried again its pod goes.
    """
    words = [f"{key}-" if value is None else f"{key}={value}" for key, value in labels.items()]
    command = f"{KUBECTL} label --overwrite node {shlex.quote(node)} {shlex.join(words)}"
    if not tried_again(labels):
        return command
    its_pod = f"--selector app={MIG_MANAGER} --field-selector spec.nodeName={shlex.quote(node)}"
    return f"{command} && {KUBECTL} delete pods --all-namespaces {its_pod}"


def tried_again(labels: Mapping[str, str | None]) -> bool:
    """Whether labels to set mean that the MIG manager is to try the same layout again."""
    return gpu_sharing.MIG_STATE in labels and gpu_sharing.MIG_LABEL not in labels
