"""`kubeadm join`: a host becomes a node of the leader's cluster."""

import secrets
import shlex
from collections.abc import Callable

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import answers, changes, remote
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing, fail, inform, warn
from deploys.engine.operation import operation
from deploys.engine.waiting import wait_or_fail
from deploys.parts.cluster.fact import Cluster, Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.etcd import members as etcd
from deploys.parts.kubeadm.join_credentials import bootstrap_token, uploaded_certificates
from deploys.parts.kubeadm.kubeadm_steps import (
    begin,
    cni_first,
    fail_foreign,
    marker,
    pods_begin_anew,
    refused_step,
    remains_reset,
    unfinished_step,
)
from deploys.parts.kubeadm.operations import note_kubelet
from deploys.parts.storage import folder_volumes as local_volumes
from gpuboot.cluster.cluster_state import belongs_elsewhere, stage
from gpuboot.cluster.etcd_members import join_refused
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.cluster.readiness import Progress
from gpuboot.config.inventory import Node
from gpuboot.hosts.remains import RESET_BY_HAND
from gpuboot.plan import Change

_REGISTERED_S = 60


@operation()
def joined(
    node: Node,
    leader: str,
    kubelet: str,
    join_config: Callable[[str, str, str], str],
    init_config: Callable[[str], str],
) -> Commands:
    """Ensure that this host is a node of the leader's cluster.

    Its credential is made for this join alone, travels by standard input and ends with it.

    + leader: inventory name of the leader
    + kubelet: digest of the kubelet's configuration
    + join_config: gives kubeadm's configuration of this node, which is secret, for the pin of the
      cluster's certificate authority, a bootstrap token and a certificate key ("" on a worker)
    + init_config: gives the leader's, by which it uploads its certificates, for that key
    """
    state = read(Kubeadm, socket=SOCKET)
    progress = stage(state, "join")
    if progress == "done":
        yield from _member(node.name, leader)
        return
    if progress == "foreign":
        yield fail_foreign(state)
        return
    old = "half-joined" if progress == "begun" else None
    changes.record(Change(subject=f"node {node.name}", old=old, new="joined to the cluster"))
    yield from remains_reset(state, "join")
    yield from cni_first(state)
    if not executing():
        yield StringCommand("kubeadm join")  # how it is done needs the leader, which may not exist
        return
    try:
        target = host.state.inventory.get_host(leader)
        yield from _join(node, target, kubelet, join_config, init_config)
    except remote.RemoteError as error:
        yield fail(f"the leader cannot prepare the join: {error}", "run again")


def _member(node: str, leader: str) -> Commands:
    """A host that has joined: that it is this cluster, and that this knows the node."""
    if executing():
        target = host.state.inventory.get_host(leader)
        authority = remote.read_fact(target, Kubeadm, socket=SOCKET).ca
        if belongs_elsewhere(read(Kubeadm, socket=SOCKET), authority):
            yield fail(
                f"this host is a node of another cluster than {leader}'s",
                f"take it out of the inventory, or, where that cluster can go without it: "
                f"`{RESET_BY_HAND}` there, then run again",
            )
            return
    should_check = executing() or answers.keeping()
    if should_check and _forgotten(host.state.inventory.get_host(leader), node):
        changes.record(Change(subject=f"node {node}", old="deleted", new="registered again"))
        warn(
            "it was deleted from the cluster: its pods begin anew, and its kubelet restarts, which "
            "registers it again"
        )
        yield StringCommand(pods_begin_anew())
        yield FunctionCommand(_registered, (leader, node), {})
        return
    host.noop("this host is a node of the cluster")


def _forgotten(leader: Host, node: str) -> bool:
    """Whether the cluster answers, and has no such node."""
    cluster = remote.read_fact(leader, Cluster, kubeconfig=ADMIN_CONF)
    return not cluster.error and node not in {item.name for item in cluster.nodes}


def _registered(state: State, host: Host, leader: str, node: str) -> bool:
    target = state.inventory.get_host(leader)

    def probe() -> Progress:
        return Progress(not _forgotten(target, node), f"node {node} registers")

    remedy = (
        "see `journalctl -u kubelet` there; to take the node out for good: pyinfra INVENTORY "
        f"deploys/remove.py --data gpuboot_remove={node}"
    )
    return wait_or_fail(host, probe, _REGISTERED_S, remedy)


def _forget(leader: Host, node: str, address: str) -> tuple[str, str] | None:
    """Remove what the cluster still knows of this host's earlier membership.

    Returns cause and remedy when the name is another machine's, which kubeadm refuses as well.
    """
    nodes = remote.read_fact(leader, Cluster, kubeconfig=ADMIN_CONF).nodes
    old = next((item for item in nodes if item.name == node), None)
    if old is None:
        return None
    if address not in old.address.split():
        return (
            f"the cluster has a node {node} already, at {old.address}",
            "give this host another node_name, or, if that machine is gone: kubectl delete node "
            + node,
        )
    remote.run(leader, f"{KUBECTL} delete node {shlex.quote(node)}")
    return None


def _etcd_forgets(leader: Host, node: str, address: str) -> tuple[str, str] | None:
    """Remove etcd's members of this machine's earlier life, if the others are enough.

    Returns cause and remedy where no control plane can join.
    """
    members = etcd.members(leader)
    old = [member for member in members if member.is_of(node, address)]
    if refusal := join_refused(members, old):
        return refusal
    for member in old:
        inform(f"etcd still has a member of {node}'s earlier installation: it is removed")
        etcd.remove_member(leader, member)
    return None


def _join(
    node: Node,
    leader: Host,
    kubelet: str,
    join_config: Callable[[str, str, str], str],
    init_config: Callable[[str], str],
) -> Commands:
    refusal = _forget(leader, node.name, node.address)
    if node.role == "control_plane":
        refusal = refusal or _etcd_forgets(leader, node.name, node.address)
    if refusal:
        yield fail(*refusal)
        return
    for volume in local_volumes.missing_volumes(leader, host, node.name):
        warn(f"the data of volume {volume.claim} was on this host and is gone: it begins empty")
        yield StringCommand(local_volumes.create_folder_command(volume))
    authority = remote.read_fact(leader, Kubeadm, socket=SOCKET).ca
    # the secret is read once and given twice; printf is a part of the shell
    config_input = "printf '%s\\n' \"$config\" |"
    command = (
        f"config=$(cat) && {{ {config_input} kubeadm join phase preflight --config /dev/stdin ||"
        f" {refused_step('join')}; }} && {begin('join')} &&"
        f" {{ {config_input} kubeadm join --skip-phases=preflight --config /dev/stdin ||"
        f" {unfinished_step('join')}; }} && {note_kubelet(kubelet)} && rm {marker('join')}"
    )
    with bootstrap_token(leader, node.name) as token:
        if node.role == "worker":
            yield StringCommand(command, _stdin=join_config(authority, token.value, ""))
            return
        key = secrets.token_hex(32)
        with uploaded_certificates(leader, init_config(key)):
            yield StringCommand(command, _stdin=join_config(authority, token.value, key))
