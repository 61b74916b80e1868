"""etcd of the control planes: whether its members are healthy, and which there are."""

import time
from collections.abc import Sequence

from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import remote
from deploys.engine.commands import failure, report_failure
from deploys.engine.connections import unreachable
from deploys.engine.waiting import wait_or_fail
from deploys.parts.cluster.api_silence import lacks
from deploys.parts.cluster.fact import EtcdHealth
from gpuboot.cluster.etcd_members import Member, parse
from gpuboot.cluster.kubeadm import CRICTL
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import Stuck
from gpuboot.cluster.stuck_api_server import of_control_plane

_ETCD_S = 120
_PKI = "/etc/kubernetes/pki/etcd"
# By the container, not by kubectl exec: the API server may be away just then.
_ETCDCTL = (
    f'{CRICTL} exec "$({CRICTL} ps -q --state running --name "^etcd$" | head -n 1)" etcdctl'
    " --endpoints=https://127.0.0.1:2379 --command-timeout=15s"
    f" --cacert={_PKI}/ca.crt --cert={_PKI}/server.crt --key={_PKI}/server.key"
)


def members(control_plane: Host) -> list[Member]:
    """The members of etcd, and which of them are healthy. Raises `RemoteError`.

    + control_plane: the host that is asked
    """
    member_list = remote.run(control_plane, f"{_ETCDCTL} member list -w json")
    # its exit code says that one is not healthy, its output which
    command = f'said=$({_ETCDCTL} endpoint health --cluster -w json 2>/dev/null); echo "$said"'
    return parse(member_list, remote.run(control_plane, command))


def remove_member(control_plane: Host, member: Member) -> None:
    """Remove a member for good. Raises `RemoteError`. + control_plane: the host that is asked"""
    remote.run(control_plane, f"{_ETCDCTL} member remove {member.id}")


def wait_for_etcd(state: State, host: Host, control_planes: Sequence[str], steady_s: int) -> bool:
    """Wait until every member of etcd answers; a FunctionCommand's body. False: one does not.

    + control_planes: inventory names of their hosts
    + steady_s: how long all must have answered
    """
    hosts = [state.inventory.get_host(name) for name in control_planes]
    if unreachable_hosts := [item.name for item in hosts if item.name in unreachable]:
        cause = (
            f"{', '.join(unreachable_hosts)} cannot be reached: etcd may not lose one more member, "
            "as it would while this one restarts"
        )
        remedy = (
            "bring it back; or remove it for good: pyinfra INVENTORY deploys/remove.py --data "
            f"gpuboot_remove={unreachable_hosts[0]}; then run again"
        )
        return report_failure(host, failure(cause, remedy))
    since: list[float] = []

    def probe() -> Progress:
        health = {item.name: remote.read_fact(item, EtcdHealth) for item in hosts}
        unhealthy = [f"{name} ({message})" for name, message in health.items() if message]
        text = f"etcd is healthy on {len(health) - len(unhealthy)} of {len(health)} control planes"
        if unhealthy:
            since.clear()
            reasons = [reason for item in hosts if health[item.name] for reason in _reasons(item)]
            text = "; ".join([f"{text}; not on {', '.join(unhealthy)}", *map(str, reasons)])
            return Progress(False, text, stuck=tuple(reasons), ready=len(health) - len(unhealthy))
        since.append(time.monotonic())
        return Progress(since[-1] - since[0] >= steady_s, text)

    remedy = "see `crictl ps -a --name etcd` and its log, then run again"
    return wait_or_fail(host, probe, _ETCD_S, remedy)


def _reasons(member: Host) -> tuple[Stuck, ...]:
    """What keeps etcd from running on a host."""
    parts = ("containerd", "kubelet", "etcd")
    return of_control_plane([lack for lack in lacks(member) if lack[0] in parts], member.name)
