"""Newer releases of Kubernetes, patch and minor, on the hosts of a living cluster.

As kubernetes.io's "Upgrading kubeadm clusters" has it: kubeadm first, then the control plane, then
the kubelet, while no new pods come to its node. A step that is repeated does no harm, so an
upgrade that was interrupted begins again on the host that it was interrupted on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.facts.kubeadm import Cluster, Kubeadm
from deploys.lib import changes, cordon, planned_packages, remote
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing, fail, report_failure
from deploys.lib.drain import Moving, drain
from deploys.lib.etcd import wait_for_etcd
from deploys.lib.kubectl import ADMIN_CONF
from deploys.lib.long_command import long_command
from deploys.lib.operation import operation
from deploys.lib.package_downloads import ready
from deploys.lib.remote import RemoteError
from deploys.lib.waiting import wait_until
from deploys.operations import etcd_backup
from deploys.operations import packages as package_operations
from deploys.operations.kubeadm import SOCKET, note, note_kubelet
from deploys.operations.kubeadm_changes import (
    CONTROL_PLANE,
    KUBELET,
    clock,
    ignored,
    wait_until_ready,
)
from deploys.operations.kubeadm_steps import marker
from gpuboot.hosts.platforms import PackageManager
from gpuboot.kubernetes import version_skew
from gpuboot.kubernetes.cluster_state import ClusterState, KubeadmState
from gpuboot.kubernetes.readiness import Progress
from gpuboot.plan import Change, Effect

_API_S = 300
# a newer kubelet may make the static pods of its control plane anew, seconds after it is Ready
_STEADY_S = 15


@operation()
def upgraded(
    node: str,
    leader: str,
    version: str,
    packages: dict[str, str],
    manager: PackageManager,
    leads: bool = True,
    turn: bool = True,
    control_planes: Sequence[str] = (),
    moving: Moving | None = None,
    ignore: Sequence[str] = (),
) -> Commands:
    """Ensure that this host runs this release: the leader, other control planes, then workers.

    + node: its Kubernetes name; leader: inventory name of the leader, `leads`: of this host
    + turn: whether it is this host's turn; else it is only read, so that all hosts answer at once
    + version: without its v; packages: of `gpuboot.kubernetes.kubeadm.packages`, for `manager`
    + control_planes: inventory names of all, if this host is one; moving: None: the defaults
    """
    state = read(Kubeadm, socket=SOCKET)
    if not turn:
        host.noop("another host's turn")
        return
    if not state.packages and not executing():
        host.noop("an operation before this one installs Kubernetes")
        return
    cluster = read(Cluster, kubeconfig=ADMIN_CONF) if leads else ClusterState()
    if _is_upgraded(state, packages, cluster.server, version):
        host.noop(f"Kubernetes {version}")
        return
    planned_packages.note_packages(_missing(state, packages))
    early = _refused(cluster, version) if leads else _too_early(leader, version, control_planes)
    if problem := early or _stopped():
        yield fail(*problem)
        return
    moved = _moved(moving or Moving(), _running(node, leader, state), version)
    _record(node, version, state, cluster if leads else None, bool(moved))
    task = _Upgrade(node, leader, version, packages, state, manager, leads, control_planes, ignore)
    yield from _upgrade(task, cluster.config, moved)


@dataclass(frozen=True)
class _Upgrade:
    """One host's, by arguments of `upgraded`. + state: how far kubeadm got on it"""

    node: str
    leader: str
    version: str
    packages: Mapping[str, str]
    state: KubeadmState
    manager: PackageManager
    leads: bool
    control_planes: Sequence[str]
    ignore: Sequence[str]


def _upgrade(it: _Upgrade, digest: str, moved: dict[str, Any]) -> Commands:
    """kubeadm, what it upgrades, and then the kubelet.

    + digest: of the configuration in force, as the cluster's record of it has; "" for none
    + moved: how pods are moved away: arguments of `drain`; nothing: they stay
    """
    if missing := _missing(it.state, it.packages):
        yield from ready(missing, it.manager, f"{it.node} stays as it is")
    first = {"kubeadm": it.packages["kubeadm"]}
    yield from _etcd_healthy(it.control_planes)
    if it.leads:
        yield etcd_backup.before("upgrade")
    yield StringCommand(f"mkdir -p /etc/gpuboot && touch {marker('upgrade')}")
    yield from package_operations.installed._inner(first, it.manager, hold=True)
    command = f"kubeadm upgrade apply --yes v{it.version}" if it.leads else "kubeadm upgrade node"
    yield long_command(
        StringCommand(command, *ignored(it.ignore)),
        f"kubeadm upgrades {it.node} to {it.version}",
        "fix what it names and run again: the upgrade goes on from here",
    )
    if digest:
        yield StringCommand(note(digest))  # kubeadm writes its record again, without annotations
    yield from _kubelet(it, moved)
    yield from _etcd_healthy(it.control_planes, _STEADY_S)
    yield StringCommand(f"rm {marker('upgrade')}")


def _kubelet(it: _Upgrade, moved: dict[str, Any]) -> Commands:
    """The kubelet and what comes with it, on a node that takes no new pods meanwhile."""
    yield FunctionCommand(_keep_off, (it.node, it.leader), moved)
    rest = {name: version for name, version in it.packages.items() if name != "kubeadm"}
    yield from package_operations.installed._inner(rest, it.manager, hold=True)
    since = clock(it.leader)
    yield StringCommand("systemctl daemon-reload && systemctl restart kubelet")
    yield from wait_until_ready(it.node, it.leader, it.version, since)
    if noted := it.state.kubelet_config:
        yield StringCommand(note_kubelet(noted))  # kubeadm has written its file again
    yield FunctionCommand(_let_in, (it.node, it.leader), {})


def _keep_off(state: State, host: Host, node: str, leader: str, **moved: Any) -> bool:
    """A FunctionCommand's body; pyinfra passes the first two by these names. False: it failed.

    A person's cordon stays, before and afterwards.

    + moved: how its pods are moved to other nodes (`deploys.lib.drain`); nothing: they stay
    """
    lead = state.inventory.get_host(leader)
    try:
        cordon.cordon(lead, node, host)
        if moved:
            drain(lead, node, **moved)
    except RemoteError as error:
        return report_failure(host, str(error))
    return True


def _let_in(state: State, host: Host, node: str, leader: str) -> bool:
    try:
        if cordon.by_gpuboot(host):
            cordon.uncordon(state.inventory.get_host(leader), node, host)
    except RemoteError as error:
        return report_failure(host, str(error))
    return True


def _etcd_healthy(control_planes: Sequence[str], steady_s: int = 0) -> Commands:
    """Go on only while every member of etcd answers: one that does not must not be followed by
    the restart of another.

    + steady_s: how long they must have answered
    """
    if control_planes:
        yield FunctionCommand(wait_for_etcd, (list(control_planes), steady_s), {})


def _is_upgraded(
    state: KubeadmState, packages: Mapping[str, str], server: str, version: str
) -> bool:
    """Whether packages and API server ("" for another host's) are of this release."""
    installed = not _missing(state, packages)
    same = not server or version_skew.upgrade_step(server, version) == "none"
    return installed and same and "upgrade" not in state.started


def _missing(state: KubeadmState, packages: Mapping[str, str]) -> dict[str, str]:
    """Packages that are not installed at their version, a pattern."""
    return {
        name: pattern
        for name, pattern in packages.items()
        if not fnmatchcase(state.packages.get(name, ""), pattern)
    }


def _refused(cluster: ClusterState, version: str) -> tuple[str, str] | None:
    """Cause and remedy when no run may bring the control plane to this release."""
    problems = version_skew.problems([], version, cluster) if cluster.server else []
    return (problems[0].cause, problems[0].remedy) if problems else None


def _too_early(leader: str, version: str, control_planes: Sequence[str]) -> tuple[str, str] | None:
    """Cause and remedy when a node may not be upgraded yet; None when it may.

    A kubelet must never be newer than an API server.

    + control_planes: nothing for a worker, which comes after all of them
    """
    if not executing():
        return None
    target = host.state.inventory.get_host(leader)

    def probe() -> Progress:
        state = remote.read_fact(target, Cluster, kubeconfig=ADMIN_CONF)
        cause = version_skew.too_early(state, version, worker=not control_planes)
        return Progress(not cause, cause, failed=bool(cause) and not state.error)

    end = wait_until(host, probe, _API_S)
    if end.done:
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
        other.name
        for other in host.state.inventory
        if other is not host and _has_failed(other, host.executing_op_hash)
    ]
    if not failed:
        return None
    return (
        f"not upgraded, because {', '.join(failed)} failed: the other nodes stay as they are",
        f"see what {failed[0]} said, then run again: the upgrade goes on from there",
    )


def _has_failed(other: Host, op_hash: str | None) -> bool:
    found: Any = host.state.ops[other].get(op_hash or "")
    meta = found.operation_meta if found else None
    return bool(meta and meta.is_complete() and not meta.did_succeed())


def _running(node: str, leader: str, state: KubeadmState) -> str:
    """Version of the kubelet that runs; that of its package until the run executes."""
    if executing():
        target = host.state.inventory.get_host(leader)
        cluster = remote.read_fact(target, Cluster, kubeconfig=ADMIN_CONF)
        return next((item.kubelet for item in cluster.nodes if item.name == node), "")
    return state.packages.get("kubelet", "")


def _moved(moving: Moving, running: str, version: str) -> dict[str, Any]:
    """How pods are moved away: arguments of `drain`; nothing: they stay.

    + running: version of the kubelet; "" where it is not known
    """
    minor = bool(running) and version_skew.upgrade_step(running, version) == "minor"
    if moving.drain == "always" or (moving.drain == "when-needed" and minor):
        return moving.moved()
    return {}


def _record(
    node: str, version: str, state: KubeadmState, cluster: ClusterState | None, drained: bool
) -> None:
    """+ cluster: None: the host is not the leader"""
    moved = "; its pods are moved to other nodes, as PodDisruptionBudgets allow" if drained else ""
    note = f"no new pods meanwhile{moved}"
    pods = None if drained else ()  # which of them will be there then is not known
    controls = cluster is not None or "manifests/kube-apiserver.yaml" in state.files
    subject = f"kubelet of {node}" if cluster is None else "control plane"
    old = (cluster.server if cluster else "") or state.packages.get("kubelet")
    # not asked of `kubeadm upgrade plan`, which makes a Job in the cluster to see whether it works
    brought = version_skew.differences(cluster, version) if cluster else []
    changes.record(
        Change(subject=subject, field="Kubernetes", old=old, new=version),
        *(Change(subject=name, field="version", old=now, new=new) for name, now, new in brought),
        *(CONTROL_PLANE if controls else ()),
        Effect(kind="cordon", target=f"node {node}", note=note, gpu_pods=pods),
        KUBELET,
    )
