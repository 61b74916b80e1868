"""Newer releases of Kubernetes, patch and minor, on the control planes of a living cluster.

As kubernetes.io's "Upgrading kubeadm clusters" has it: kubeadm first, then the control plane, then
the kubelet, while no new pods come to its node. The kubelet, which may be older than API servers
and never newer, comes with the other upgrades of its node (`deploys.parts.nodes.operations`). A
step that is repeated does no harm, so an upgrade that was interrupted begins again on the host that
it was interrupted on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.context import host

from deploys.engine import changes, planned_packages
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail
from deploys.engine.long_command import long_command
from deploys.engine.operation import operation
from deploys.engine.waiting import wait_until
from deploys.parts.cluster.api_silence import looked
from deploys.parts.cluster.fact import Cluster, Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.etcd import operations as etcd_backup
from deploys.parts.etcd.members import wait_for_etcd
from deploys.parts.kubeadm.change_operations import CONTROL_PLANE, ignored
from deploys.parts.kubeadm.kubeadm_steps import marker
from deploys.parts.kubeadm.operations import note, note_kubelet
from deploys.parts.packages import operations as package_operations
from deploys.parts.packages.package_downloads import ready
from gpuboot.cluster import version_skew
from gpuboot.cluster.cluster_state import ClusterState, KubeadmState
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.cluster.node_upgrade import mismatched
from gpuboot.cluster.readiness import Progress
from gpuboot.hosts.platforms import PackageManager
from gpuboot.plan import Change

UPGRADE_NODE = "kubeadm upgrade node"
_API_S = 300


@operation()
def upgraded(
    node: str,
    leader: str,
    version: str,
    kubeadm: str,
    manager: PackageManager,
    leads: bool = True,
    turn: bool = True,
    control_planes: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> Commands:
    """Ensure that the control plane of this host is of this release, the leader's before others.

    + node: its Kubernetes name; leader: inventory name of the leader, `leads`: of this host
    + turn: whether it is this host's turn; else it is only read, so that all hosts answer at once
    + version: without its v; kubeadm: the pattern of the package's version, for `manager`
    + control_planes: inventory names of all
    """
    state = read(Kubeadm, socket=SOCKET)
    if not turn:
        host.noop("another host's turn")
        return
    if "kubelet.conf" not in state.files:
        host.noop("no node of a cluster")
        return
    packages = {"kubeadm": kubeadm}
    cluster = read(Cluster, kubeconfig=ADMIN_CONF) if leads else ClusterState()
    if _is_upgraded(state, packages, cluster.server, version):
        host.noop(f"Kubernetes {version}")
        return
    planned_packages.note_packages(mismatched(packages, state.packages))
    early = _refusal(cluster, version) if leads else too_early(leader, version, worker=False)
    if problem := early or _stopped():
        yield fail(*problem)
        return
    _record(node, version, state, cluster if leads else None)
    task = _Upgrade(node, version, packages, state, manager, leads, control_planes, ignore)
    yield from _upgrade(task, cluster.config)


@dataclass(frozen=True)
class _Upgrade:
    """The upgrade of a host, by arguments of `upgraded`. + state: how far kubeadm got on it"""

    node: str
    version: str
    packages: Mapping[str, str]
    state: KubeadmState
    manager: PackageManager
    leads: bool
    control_planes: Sequence[str]
    ignore: Sequence[str]


def _upgrade(upgrade: _Upgrade, digest: str) -> Commands:
    """Upgrade kubeadm and what it manages; a mark tells that the kubelet is left.

    + digest: of the configuration in force, as the cluster's record of it has; "" for none
    """
    if packages := mismatched(upgrade.packages, upgrade.state.packages):
        yield from ready(packages, upgrade.manager, f"{upgrade.node} stays as it is")
    yield from _etcd_healthy(upgrade.control_planes)
    if upgrade.leads:
        yield etcd_backup.before("upgrade")
    yield StringCommand(f"mkdir -p /etc/gpuboot && touch {marker('upgrade')} {marker('kubelet')}")
    command = f"kubeadm upgrade apply --yes v{upgrade.version}" if upgrade.leads else UPGRADE_NODE
    yield from by_kubeadm(
        upgrade.node, upgrade.version, upgrade.packages, upgrade.manager, command, upgrade.ignore
    )
    if digest:
        yield StringCommand(note(digest))  # kubeadm writes its record again, without annotations
    if kubelet_digest := upgrade.state.kubelet_config:
        yield StringCommand(note_kubelet(kubelet_digest))  # and the kubelet's file
    yield from _etcd_healthy(upgrade.control_planes)
    yield StringCommand(f"rm {marker('upgrade')}")


def by_kubeadm(
    node: str,
    version: str,
    packages: Mapping[str, str],
    manager: PackageManager,
    command: str,
    ignore: Sequence[str],
) -> Commands:
    """Upgrade kubeadm to this release, and what it manages on this host.

    + packages: with kubeadm's; command: of kubeadm
    + ignore: checks of kubeadm that are passed over
    """
    only = {"kubeadm": packages["kubeadm"]}
    yield from package_operations.installed._inner(only, manager, hold=True)
    yield long_command(
        StringCommand(command, *ignored(ignore)),
        f"kubeadm upgrades {node} to {version}",
        "fix what it names and run again: the upgrade goes on from here",
    )


def _etcd_healthy(control_planes: Sequence[str]) -> Commands:
    """Wait until every member of etcd answers, so that no other one is restarted while one is
    away.
    """
    if control_planes:
        yield FunctionCommand(wait_for_etcd, (list(control_planes), 0), {})


def _is_upgraded(
    state: KubeadmState, packages: Mapping[str, str], server: str, version: str
) -> bool:
    """Whether packages and API server ("" for another host's) are of this release."""
    installed = not mismatched(packages, state.packages)
    is_at_version = not server or version_skew.upgrade_step(server, version) == "none"
    return installed and is_at_version and "upgrade" not in state.started


def _refusal(cluster: ClusterState, version: str) -> tuple[str, str] | None:
    """Cause and remedy when no run may bring the control plane to this release."""
    problems = version_skew.problems([], version, cluster) if cluster.server else []
    return (problems[0].cause, problems[0].remedy) if problems else None


def too_early(leader: str, version: str, worker: bool) -> tuple[str, str] | None:
    """Cause and remedy when a node may not be upgraded yet; None when it may.

    A kubelet must never be newer than an API server. Before the run executes it always may: the
    control planes come first.

    + worker: it comes after all control planes, not the leader's alone
    """
    if not host.state.is_executing:
        return None
    target = host.state.inventory.get_host(leader)

    def look(state: ClusterState) -> Progress:
        cause = version_skew.too_early(state, version, worker=worker)
        return Progress(not cause, cause, failed=bool(cause) and not state.error)

    end = wait_until(host, lambda: looked(target, look), _API_S)
    if end.complete:
        return None
    return (
        f"not upgraded to Kubernetes {version} before the control plane is: {end.text}",
        f"fix what {leader} said when it was upgraded, then run again",
    )


def _stopped() -> tuple[str, str] | None:
    """Cause and remedy when this operation has failed on another host: it goes no further."""
    if not host.state.is_executing:
        return None
    failed = [
        peer.name
        for peer in host.state.inventory
        if peer is not host and _has_failed(peer, host.executing_op_hash)
    ]
    if not failed:
        return None
    return (
        f"not upgraded, because {', '.join(failed)} failed: the other nodes stay as they are",
        f"see what {failed[0]} said, then run again: the upgrade goes on from there",
    )


def _has_failed(peer: Host, op_hash: str | None) -> bool:
    operation: Any = host.state.ops[peer].get(op_hash or "")
    meta = operation.operation_meta if operation else None
    return bool(meta and meta.is_complete() and not meta.did_succeed())


def _record(node: str, version: str, state: KubeadmState, cluster: ClusterState | None) -> None:
    """Record the upgrade's changes for the plan. + cluster: None: the host is not the leader"""
    subject = f"control plane of {node}" if cluster is None else "control plane"
    old = (cluster.server if cluster else "") or state.packages.get("kubeadm")
    # not asked of `kubeadm upgrade plan`, which makes a Job in the cluster to see whether it works
    brought = version_skew.differences(cluster, version) if cluster else []
    changes.record(
        Change(subject=subject, field="Kubernetes", old=old, new=version),
        *(Change(subject=name, field="version", old=now, new=new) for name, now, new in brought),
        *CONTROL_PLANE,
    )
