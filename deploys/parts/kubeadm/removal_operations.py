"""A node leaves the cluster for good: drained, reset, deleted."""

import shlex
from collections.abc import Callable, Sequence

from pyinfra.api.command import FunctionCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail, failure, inform, report_failure, warn
from deploys.engine.operation import operation
from deploys.engine.remote import RemoteError
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.cluster.node_drain import drain
from deploys.parts.cluster.pods_fact import NodePods
from deploys.parts.etcd import members as etcd
from deploys.parts.etcd import operations as etcd_backup
from deploys.parts.kubeadm.operations import reset_commands
from gpuboot.cluster import etcd_members, removal
from gpuboot.cluster.drain import NodePods as Leaving
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.plan import Change, Effect


@operation()
def removed(
    node: str, machine: str = "", address: str = "", member: bool = False,
    drain_timeout_s: int = 600, remade_claims: Sequence[str] = (),
) -> Commands:  # fmt: skip
    """Ensure that a node is no longer part of the cluster. Runs on the leader.

    Its pods are evicted, disruption budgets respected; then its machine is reset, and the node
    deleted. A node that is not Ready cannot be drained: its pods are deleted with it.

    + node: its name in Kubernetes
    + machine: inventory name of its machine, to be reset; "" for one that is gone or in no cluster
    + address: of the machine, which a member of etcd that never started is known by; "": not known
    + member: etcd has a member of it
    + drain_timeout_s: how long its pods may take to leave
    + remade_claims: regular expressions of claims, as namespace/name, that go with the node's own
      volumes and are made again
    """
    state = read(NodePods, kubeconfig=ADMIN_CONF, node=node)
    if state.error:
        yield fail(f"the cluster cannot be asked about {node}: {state.error}", "run again")
        return
    if not state.exists and not machine and not member:
        host.noop(f"the cluster does not know node {node}")
        return
    own_claims, other_claims = removal.claims(state, remade_claims)
    _record(node, state, own_claims)
    if member:
        yield FunctionCommand(_etcd_can_spare, (node, address), {})
        yield etcd_backup.before("removal")
    if state.ready:
        yield FunctionCommand(_drained, (node, drain_timeout_s), {})
    if machine:
        yield FunctionCommand(_reset, (machine,), {})
    if member:
        yield FunctionCommand(_etcd_left, (node, address), {})
    if own_claims:
        yield FunctionCommand(_claims_deleted, (node, own_claims), {})
    yield FunctionCommand(_deleted, (node,), {})
    if other_claims:
        yield FunctionCommand(_warn_of_claims, (node, other_claims), {})


def _record(node: str, state: Leaving, claims: Sequence[str]) -> None:
    busy = tuple(f"{pod.namespace}/{pod.name}" for pod in state.leaving if pod.gpus)
    changes.record(Change(subject=f"node {node}", old="member of the cluster"))
    for claim in claims:
        changes.record(Change(subject=f"volume claim {claim}", old=f"on {node} alone"))
    if state.exists:
        note = f"{len(state.leaving)} pods end there"
        changes.record(Effect(kind="cordon", target=f"node {node}", note=note, gpu_pods=busy))


def _attempt(host: Host, prefix: str, do: Callable[[], None]) -> bool:
    """Do it; a failure is told with what has been done so far."""
    try:
        do()
    except PyinfraError as error:
        text = str(error)
        return report_failure(
            host, text if "remedy:" in text else failure(prefix + text, "run again")
        )
    return True


def _drained(state: State, host: Host, node: str, timeout_s: int) -> bool:
    return _attempt(host, "", lambda: drain(host, node, timeout_s))


def _reset(state: State, host: Host, machine: str) -> bool:
    target = state.inventory.get_host(machine)

    def reset() -> None:
        kubeadm_state = remote.read_fact(target, Kubeadm, socket=SOCKET)
        for command in reset_commands(kubeadm_state):
            remote.run(target, command)

    return _attempt(host, f"{machine} is drained but not reset: ", reset)


def _etcd_can_spare(state: State, host: Host, node: str, address: str) -> bool:
    """Fail, before anything is touched, where etcd would not have its majority without the node."""

    def look() -> None:
        members = etcd.members(host)
        leaving = [member for member in members if member.is_of(node, address)]
        if leaving and (cause := etcd_members.too_few(members, leaving)):
            remedy = "bring back those that do not answer, then run again"
            raise RemoteError(failure(cause, remedy))

    return _attempt(host, f"etcd cannot be asked about {node}: ", look)


def _etcd_left(state: State, host: Host, node: str, address: str) -> bool:
    """Remove the member of a machine that is gone: kubeadm reset does so where it can run."""

    def remove_members() -> None:
        for member in etcd.members(host):
            if member.is_of(node, address):
                etcd.remove_member(host, member)

    return _attempt(host, f"etcd's member of {node} is not removed: ", remove_members)


def _claims_deleted(state: State, host: Host, node: str, claims: Sequence[str]) -> bool:
    """Delete claims before their node, so that a run that is killed finds them again.

    They are gone when the last pod that is bound to the node is: nothing waits for that here.
    """

    def delete() -> None:
        for claim in claims:
            namespace, name = map(shlex.quote, claim.split("/"))
            remote.run(host, f"{KUBECTL} -n {namespace} delete pvc {name} --wait=false "
                             "--ignore-not-found")  # fmt: skip

    is_done = _attempt(host, f"volume claims of {node} are not deleted: ", delete)
    if is_done:
        inform(f"{', '.join(claims)}: begin empty on another node, since {node} alone had them")
    return is_done


def _warn_of_claims(state: State, host: Host, node: str, claims: Sequence[str]) -> bool:
    warn(f"volume claims of {node} alone stay: {', '.join(claims)}; pods with them wait until "
         "somebody deletes claim and pod, and what was in the volume is restored")  # fmt: skip
    return True


def _deleted(state: State, host: Host, node: str) -> bool:
    def delete() -> None:
        remote.run(host, f"{KUBECTL} delete node {shlex.quote(node)} --ignore-not-found")

    is_done = _attempt(host, f"node {node} is not deleted: ", delete)
    if is_done:
        inform(f"node {node} is out of the cluster: take it out of the inventory as well, since "
               "deploys/site.py would let it join again")  # fmt: skip
    return is_done
