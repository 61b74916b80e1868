"""How nodes share their GPUs. All of it runs on the leader."""

from collections.abc import Iterator, Mapping, Sequence

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import host

from deploys.engine import changes, planned_drains
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing
from deploys.engine.operation import operation
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.cluster.pods_fact import GpuPods
from deploys.parts.nodes.node_sharing import (
    MIG_MANAGER,
    Look,
    Turn,
    changed,
    label_command,
    operands_ready,
    tried_again,
)
from gpuboot.cluster import node_upgrade, offers
from gpuboot.cluster.objects import Node
from gpuboot.plan import Change, Effect

Labels = Mapping[str, str | None]


@operation()
def applied(nodes: Sequence[Turn], look: Look | None = None, timeout_s: float = 900) -> Commands:
    """Ensure that each node's labels ask for what it is to offer.

    A node whose GPUs are in use, or can be, is drained before and proven after, one after the
    other; one that has never offered GPUs is only labelled, and the rollout waits for it. The first
    that fails ends it.

    + look: whether the GPU Operator's pods have the configurations that the labels name
    + timeout_s: how long each wait may take
    """
    nodes_by_name = {node.name: node for node in read(Cluster, kubeconfig=ADMIN_CONF).nodes}
    differences = {
        turn.node: labels
        for turn in nodes
        if (labels := offers.label_changes(_labels(nodes_by_name.get(turn.node)), turn.offer))
    }
    turns = [turn for turn in nodes if turn.node in differences and not _in_its_upgrade(turn)]
    if not turns:
        host.noop("each node shares its GPUs as the settings say")
        return
    in_use = [turn for turn in turns if _in_use(nodes_by_name.get(turn.node))]
    for turn in in_use:
        planned_drains.note_drain(turn.node, turn.host, turn.moved())
    for turn in turns:
        changes.record(*_changes(turn, nodes_by_name.get(turn.node), differences[turn.node]))
        changes.record(*(_effects(turn) if turn in in_use else ()))
        if tried_again(differences[turn.node]):
            note = f"it tries again what failed on {turn.node}"
            changes.record(Effect(kind="restart", target=f"DaemonSet {MIG_MANAGER}", note=note))
    for turn in turns:
        if turn not in in_use:
            yield StringCommand(label_command(turn.node, differences[turn.node]))
    if in_use and look:
        kept_out = [turn.node for turn in in_use if _kept_out(nodes_by_name.get(turn.node))]
        changing = [turn.node for turn in in_use]
        yield FunctionCommand(operands_ready, (look, timeout_s, kept_out, changing), {})
    for turn in in_use:
        yield FunctionCommand(changed, (turn, differences[turn.node], timeout_s), {})


def _in_its_upgrade(turn: Turn) -> bool:
    """Whether a plan has told of it: what is left then is seen when the run comes here."""
    return not executing() and turn.node in planned_drains.sharing


def _labels(node: Node | None) -> Mapping[str, str]:
    return node.labels if node else {}


def _in_use(node: Node | None) -> bool:
    """Whether pods hold its GPUs, or can come to. Pods that nobody can tell of count as some."""
    if node is None:
        return False
    return _kept_out(node) or offers.has_offered(node) or read(GpuPods, node=node.name) != ()


def _kept_out(node: Node | None) -> bool:
    """Whether an earlier run left it tainted."""
    return node is not None and node.has_taint(node_upgrade.KEY)


def _changes(turn: Turn, node: Node | None, labels: Labels) -> Iterator[Change]:
    old = _labels(node)
    for name, value in labels.items():
        subject = f"node {turn.node}"
        yield Change(subject=subject, field=f"label {name}", old=old.get(name), new=value)


def _effects(turn: Turn) -> Iterator[Effect]:
    target = f"node {turn.node}"
    yield Effect(kind="cordon", target=target, note="no new pods until its GPUs are proven")
    if turn.moved():
        note = planned_drains.note_of(turn.node)
        pods = () if executing() else read(GpuPods, node=turn.node)
        yield Effect(kind="drain", target=target, note=note, gpu_pods=pods)
