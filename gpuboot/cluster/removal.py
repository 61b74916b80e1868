"""Taking a node out of a cluster for good: which, whether it may go, what a person is asked."""

import re
from collections.abc import Iterable, Sequence

from gpuboot.cluster.drain import NodePods, loss_lines
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem, join_first

_MAX_LISTED = 12


def find(nodes: Sequence[Node], node_name: str) -> Node | None:
    """The node of the inventory that somebody names, by its name or its host's."""
    return next((node for node in nodes if node_name in (node.name, node.host)), None)


def refusal(nodes: Sequence[Node], leader: Node, node_name: str) -> Problem | None:
    """Why a node may not be removed, as far as the inventory tells; None when it may.

    + leader: who does it: a control plane that stays, where there is one
    + node_name: as `find` takes it; "": nobody named one
    """
    other_names = [node.name for node in nodes if node.host != leader.host]
    if not node_name:
        remedy = (
            f"name one: --data gpuboot_remove=NODE ({', '.join(other_names) or 'there is none'})"
        )
        return Problem("", "no node is named that is to be removed", remedy)
    node = find(nodes, node_name)
    if node is None or node.host != leader.host:
        return None
    return Problem(
        node.host,
        f"{node.name} is the only control plane: without it there is no cluster",
        "to take the whole cluster down: pyinfra INVENTORY deploys/reset.py --data "
        "gpuboot_reset=CLUSTER",
    )


def unsafe(
    name: str, in_inventory: bool, reached: bool, state: NodePods, member: bool = False
) -> Problem | None:
    """Why a node may not be removed, as the cluster and the machine are.

    + reached: its machine answers by SSH
    + member: etcd has a member of it
    """
    if not state.exists and not in_inventory and not member:
        cause = f"there is no node {name}, neither in the inventory nor in the cluster"
        return Problem("", cause, "name one that kubectl get nodes shows")
    if state.ready and not reached:
        reason = "cannot be reached by SSH" if in_inventory else "is not in the inventory"
        return Problem(
            "",
            f"node {name} {reason}, but is at work: deleted from the cluster, it would come back",
            "let this run reach it, so that it can be reset; or switch the machine off, and run "
            "again when the cluster shows it NotReady",
        )
    return None


def claims(state: NodePods, remade: Iterable[str]) -> tuple[list[str], list[str]]:
    """Claims of volumes that the node alone has: those that are made again, and all others.

    A pod whose claim is bound to a volume of a node that is gone waits for ever.

    + remade: regular expressions of whole claims, as namespace/name, whose owner makes them again
    """
    patterns = [re.compile(pattern) for pattern in remade]
    all_claims = [volume.claim for volume in state.volumes if volume.claim]
    remade_claims = [
        claim for claim in all_claims if any(pattern.fullmatch(claim) for pattern in patterns)
    ]
    return remade_claims, [claim for claim in all_claims if claim not in remade_claims]


def question(name: str, cluster: str, reached: bool, state: NodePods) -> str:
    """What a person is told who has not confirmed yet: what is done, and what runs there."""
    machine_text = (
        "and its machine is reset" if reached else "its machine does not answer, and stays as is"
    )
    lines = [f"this removes node {name} from the cluster {cluster}: its pods end, {machine_text}"]
    pods = [str(pod) for pod in state.leaving]
    if pods:
        verb = "evicted" if state.ready else "deleted with it"
        noun = "1 pod is" if len(pods) == 1 else f"{len(pods)} pods are"
        lines.append(f"{noun} {verb}: {join_first(pods, _MAX_LISTED, ', ')}")
    else:
        lines.append("no pods run there but those that every node has")
    lines += [
        f"{pod.namespace}/{pod.name} is kept by {budget}" for pod in state.leaving
        for budget in pod.held_by
    ]  # fmt: skip
    lines += loss_lines(state)
    lines.append(f"remedy: if that is what you want, name it: --data gpuboot_remove={name}")
    return "\n    ".join(lines)
