"""Removes a node for good: `pyinfra INVENTORY deploys/remove.py --data gpuboot_remove=NODE`.

Its pods are evicted, its machine is reset, the cluster forgets it. A machine that does not answer
any more is removed by its name alone. Without --data it says what runs there (`--limit HOST` names
the node then), and does nothing. `--data gpuboot_drain_timeout_s=N`: how long pods may take to
leave.
"""

from pyinfra.api.exceptions import DeployError
from pyinfra.context import host, inventory

from deploys.engine.connections import reach
from deploys.engine.remote import RemoteError, read_fact
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.cluster.pods_fact import NodePods
from deploys.parts.etcd import members as etcd
from deploys.parts.kubeadm import removal_operations as operations
from deploys.parts.kubeadm.operations import reset_commands
from deploys.run import deploy_kinds as kinds
from deploys.run.context import begin, read_leader
from gpuboot.cluster import removal
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.config.problems import Problem, render
from gpuboot.monitoring.charts.monitoring_values import remade_claims


def remove() -> None:
    """Remove the node that is named; on the leader, whichever control plane that is."""
    settings, _, nodes = begin()
    confirmed = str(host.data.get("gpuboot_remove") or "")
    target = confirmed or (kinds.limited[0] if len(kinds.limited) == 1 else "")
    leader = read_leader(without=target)
    if host.name != leader.host:
        return
    if problem := removal.refusal(nodes, leader, target):
        raise DeployError(render([problem]))
    node = removal.find(nodes, target)
    name, address = (node.name, node.address) if node else (target, "")
    machine = inventory.get_host(node.host) if node else None
    reached = machine is not None and reach(machine)
    state = read_fact(machine, Kubeadm, socket=SOCKET) if machine and reached else KubeadmState()
    pods = host.get_fact(NodePods, kubeconfig=ADMIN_CONF, node=name)
    if pods.error:
        cause = f"the cluster cannot be asked about {name}: {pods.error}"
        raise DeployError(render([Problem(host.name, cause, "see that its API server answers")]))
    member = (node is None or node.role == "control_plane") and _in_etcd(name, address)
    if problem := removal.unsafe(name, node is not None, reached, pods, member):
        raise DeployError(render([problem]))
    if not confirmed:
        raise DeployError(removal.question(name, settings.cluster.name, reached, pods))
    operations.removed(
        name="Remove | Drain, reset and delete the node",
        node=name,
        machine=node.host if node and reset_commands(state) else "",
        address=address,
        member=member,
        remade_claims=remade_claims(settings) if settings.monitoring.enabled else (),
        drain_timeout_s=int(host.data.get("gpuboot_drain_timeout_s") or 600),
    )


def _in_etcd(name: str, address: str) -> bool:
    try:
        return any(member.is_of(name, address) for member in etcd.members(host))
    except RemoteError as error:
        problem = Problem(host.name, f"etcd does not answer: {error}", "see `crictl ps -a` there")
        raise DeployError(render([problem])) from None


remove()
