"""How far a cluster is on its way to what was asked: pure judgements for operations that wait."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuboot.cluster import offers, operands, stuck
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.node_reports import SILENT_S
from gpuboot.cluster.objects import Node
from gpuboot.cluster.stuck import Stuck
from gpuboot.cluster.workloads import Workload
from gpuboot.hosts import mig_devices
from gpuboot.hosts.gpu_sharing import Offer


@dataclass(frozen=True)
class Progress:
    """How far something that takes time has come, at one moment.

    + complete: it is as asked
    + text: for a person: how far it is and what is missing
    + failed: waiting longer will not help
    + stuck: why it may not: a wait ends when that has lasted for its time without progress
    + ready: how much of it is ready
    """

    complete: bool
    text: str
    failed: bool = False
    stuck: tuple[Stuck, ...] = ()
    ready: int = 0


@dataclass(frozen=True)
class Part:
    """Something of the cluster that a run waits for.

    + look: how far it is in a cluster
    + timeout_s: seconds after which it is late
    + remedy: what a person can do about it when it is
    """

    look: Callable[[ClusterState], Progress]
    timeout_s: float
    remedy: str


def without(state: ClusterState, names: Sequence[str]) -> ClusterState:
    """The cluster for a run that goes on without some nodes, which it could not reach."""
    absent = tuple(node.name for node in state.nodes if node.name in names)
    nodes = tuple(node for node in state.nodes if node.name not in absent)
    return replace(state, nodes=nodes, absent=absent)


def api_answers(state: ClusterState) -> Progress:
    """Whether the API server answers."""
    if state.error:
        return Progress(False, f"the API server does not answer: {state.error}")
    return Progress(True, "the API server answers")


def nodes_ready(state: ClusterState, names: Sequence[str], since: float | None = None) -> Progress:
    """Whether all these nodes are registered and Ready, by kubelets that still report.

    + since: kubelets must have reported after this moment, in seconds since 1970 by the leader's
      clock; None: any moment of the last `SILENT_S` seconds
    """
    if state.error:
        return api_answers(state)
    nodes_by_name = {node.name: node for node in state.nodes}
    missing = [
        f"{name} ({reason})"
        for name in names
        if (reason := _not_ready(nodes_by_name.get(name), state.clock, since))
    ]
    ready = len(names) - len(missing)
    text = f"{ready} of {len(names)} nodes Ready"
    text = f"{text}; not yet: {'; '.join(missing)}" if missing else text
    return Progress(not missing, text, stuck=stuck.of_nodes(state, names), ready=ready)


def _not_ready(node: Node | None, clock: float, since: float | None) -> str:
    """Why a node is not Ready; "" when it is. + clock: now"""
    if node is None:
        return "unknown"
    if not node.ready:
        return node.message or "not Ready"
    silence = clock - node.reported
    if silence > SILENT_S or (since is not None and node.reported <= since):
        return f"its kubelet has not reported for {silence:.0f} s"
    return ""


def network_ready(state: ClusterState, names: Sequence[str]) -> Progress:
    """Whether all these nodes are Ready, and flannel, kube-proxy and CoreDNS run on them."""
    system = {"coredns": 1, "kube-proxy": len(names)}
    return all_of(
        nodes_ready(state, names),
        workloads_ready(state, "kube-flannel", {"kube-flannel-ds": len(names)}, applied=True),
        workloads_ready(state, "kube-system", system, applied=True),
    )


def any_ready(state: ClusterState, names: Sequence[str]) -> Progress:
    """Whether pods can start: one of these nodes is Ready."""
    looks = [nodes_ready(state, [name]) for name in names]
    return next((look for look in looks if look.complete), nodes_ready(state, names))


def workloads_ready(
    state: ClusterState,
    namespace: str,
    required: Mapping[str, int] | Iterable[str] = (),
    applied: bool = False,
) -> Progress:
    """Whether all workloads of a namespace are rolled out.

    + required: names that must be there, whoever makes them; as a map: with the number of pods
      that each must want at least, so that a DaemonSet that matches no node is not "ready"
    + applied: they have been applied before: no program makes them meanwhile
    """
    if state.error:
        return api_answers(state)
    workloads = [item for item in state.workloads if item.namespace == namespace]
    names = {item.name for item in workloads}
    minimum = dict(required) if isinstance(required, Mapping) else dict.fromkeys(required, 0)
    absent = [name for name in minimum if name not in names]
    late = [item for item in workloads if not _ready(item, minimum.get(item.name, 0), state)]
    total = len(workloads) + len(absent)
    text = f"{total - len(absent) - len(late)} of {total} workloads in {namespace} ready"
    ready = sum(item.current for item in workloads)
    missing = [*(f"{name} (not made yet)" for name in absent), *map(_describe, late)]
    if not missing:
        return Progress(bool(total), text, ready=ready)
    issues = [
        f"; {item}"
        for item in state.pod_issues
        if item.namespace == namespace and item.reason and stuck.counts(item, late)
    ]
    return Progress(
        False,
        f"{text}; not yet: {', '.join(missing)}{''.join(issues)}",
        stuck=(
            *(stuck.of_absent(namespace, name, state, applied) for name in absent),
            *(reason for item in late for reason in stuck.of_workload(item, state)),
        ),
        ready=ready,
    )


def deployment_ready(state: ClusterState, namespace: str, name: str) -> Progress:
    """Whether one Deployment is rolled out."""
    item = [item for item in state.workloads if (item.namespace, item.name) == (namespace, name)]
    issues = [issue for issue in state.pod_issues if issue.pod.startswith(f"{name}-")]
    state = replace(state, workloads=tuple(item), pod_issues=tuple(issues))
    return workloads_ready(state, namespace, [name], applied=True)


def _ready(item: Workload, minimum: int, state: ClusterState) -> bool:
    required = item.desired
    if item.kind == "DaemonSet":  # it counts nodes that are away, where nothing can get ready
        required = max(item.desired - len(state.absent), min(minimum, item.desired))
    if item.kind == "StatefulSet":  # nothing replaces a pod that may still run on a silent node
        required -= sum(stuck.is_away(issue, item, state) for issue in state.pod_issues)
    return item.observed and item.current >= required and item.desired >= minimum


def _describe(item: Workload) -> str:
    unit = "nodes" if item.kind == "DaemonSet" else "pods"
    return f"{item.name} ({item.current} of {item.desired} {unit})"


def gpus_allocatable(state: ClusterState, expected: Mapping[str, Offer]) -> Progress:
    """Whether every GPU node offers exactly what it is to offer, as its labels are to be.

    + expected: by node name; nodes whose GPUs others have divided by MIG are left out
    """
    if state.error:
        return api_answers(state)
    mig_nodes = {
        node.name for node in state.nodes if mig_devices.uses_mig(node.labels, node.allocatable)
    }
    relevant_offers = {
        name: offer for name, offer in expected.items() if not (offer.foreign and name in mig_nodes)
    }
    nodes_by_name = {node.name: node for node in state.nodes}
    texts = [
        f"{name} ({reason})"
        for name, offer in relevant_offers.items()
        if (reason := offers.offer_problem(nodes_by_name.get(name), offer))
    ]
    text = f"{len(relevant_offers) - len(texts)} of {len(relevant_offers)} nodes offer their GPUs"
    failed = any(
        name in nodes_by_name and offers.given_up(nodes_by_name[name].labels, offer)
        for name, offer in relevant_offers.items()
    )
    return Progress(not texts, f"{text}; not yet: {', '.join(texts)}" if texts else text, failed)


def operands_current(
    state: ClusterState, namespace: str, expected: Mapping[str, operands.ExpectedOperand]
) -> Progress:
    """Whether the GPU Operator has put the values that it was given into its DaemonSets.

    + expected: DaemonSet -> what it must be made of; one that does not exist yet is not checked
    """
    differing = [
        (item.name, operands.missing(item, expected[item.name]))
        for item in state.operands
        if item.namespace == namespace and item.name in expected
    ]
    old = [f"{name} ({', '.join(differences)})" for name, differences in differing if differences]
    names = {item.name for item in state.workloads if item.namespace == namespace}
    existing = names & expected.keys()
    old += [f"{name} (not read)" for name in sorted(existing - {name for name, _ in differing})]
    total = max(len(differing), len(existing))
    text = f"{total - len(old)} of {total} operands are as the values have them"
    return Progress(not old, f"{text}; not yet: {'; '.join(old)}" if old else text)


def policy_ready(state: ClusterState) -> Progress:
    """Whether the GPU Operator says that its ClusterPolicy is carried out.

    It says `notReady` while a node is away on which operands ran: then, what it has made of the
    policy and whether that runs on the others is all that can be asked for.
    """
    waits_for_absent = bool(state.policy) and bool(state.absent)
    text = f"ClusterPolicy is {state.policy or 'not there'}"
    absent = stuck.of_absent("gpu-operator", "ClusterPolicy", state, certain=True)
    complete = waits_for_absent or state.policy == "ready"
    return Progress(complete, text, stuck=() if state.policy else (absent,))


def operator_ready(
    state: ClusterState,
    namespace: str,
    expected_pods: Mapping[str, int],
    gpus: Mapping[str, Offer],
    made_of: Mapping[str, operands.ExpectedOperand],
) -> Progress:
    """Whether the GPU Operator has carried out its values, and nodes offer their GPUs.

    + expected_pods: DaemonSet -> number of nodes it must be on
    + gpus: node -> what it must offer; {}: there is no GPU, and no ClusterPolicy to look at
    + made_of: DaemonSet -> what the operator makes it of
    """
    return all_of(
        operands_current(state, namespace, made_of),
        workloads_ready(state, namespace, expected_pods),
        gpus_allocatable(state, gpus),
        *([policy_ready(state)] if gpus else []),
    )


def held_up(state: ClusterState, nodes: Collection[str], but: str) -> ClusterState:
    """The cluster, with DaemonSets counted as ready that pods on these nodes hold up.

    Under another MIG strategy the device plugin ends on each node whose layout breaks its rules,
    until that has changed, and none of its other pods is renewed meanwhile.

    + nodes: those whose layout is about to change
    + but: the DaemonSet that changes it, which has to be ready
    """
    stuck = {
        (issue.namespace, issue.pod.rpartition("-")[0])
        for issue in state.pod_issues
        if issue.node in nodes and issue.kind != "creating"
    } - {(issue.namespace, but) for issue in state.pod_issues}
    workloads = tuple(
        replace(item, ready=item.desired, old=0)
        if item.kind == "DaemonSet" and (item.namespace, item.name) in stuck
        else item
        for item in state.workloads
    )
    return replace(state, workloads=workloads)


def all_of(*parts: Progress) -> Progress:
    """Several progresses as one: the text tells what is missing, or that all is done."""
    missing = [part.text for part in parts if not part.complete]
    return Progress(
        not missing,
        " | ".join(missing or [part.text for part in parts]),
        any(part.failed for part in parts),
        tuple(reason for part in parts if not part.complete for reason in part.stuck),
        sum(part.ready for part in parts),
    )


def kubelet_is(
    state: ClusterState, name: str, version: str, since: float | None = None
) -> Progress:
    """Whether a node is Ready and runs this version of the kubelet. + since: as in `nodes_ready`"""
    ready = nodes_ready(state, [name], since)
    running = [node.kubelet for node in state.nodes if node.name == name]
    if not ready.complete or running == [version]:
        return ready
    return Progress(False, f"{name} runs kubelet {', '.join(running)}, not {version}")
