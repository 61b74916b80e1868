"""Changing a living cluster: newer patch releases and other settings, one host at a time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.facts.kubeadm import Cluster, Kubeadm
from deploys.lib import changes, remote
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing, fail, inform
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL
from deploys.lib.operation import operation
from deploys.lib.waiting import unfinished, wait_until
from deploys.operations import packages as package_operations
from deploys.operations.kubeadm import CONFIG, SOCKET, marker, note, note_kubelet
from gpuboot.hosts.platforms import PackageManager
from gpuboot.kubernetes.cluster_state import (
    ClusterState,
    KubeadmState,
    immutable_changes,
    upgrade_step,
)
from gpuboot.kubernetes.readiness import Progress, kubelet_is, nodes_ready
from gpuboot.plan import Change, Effect

_RUN_ON = "running pods go on"
KUBELET = Effect(kind="restart", target="kubelet", local=True, note=_RUN_ON)
CONTROL_PLANE = (
    Effect(
        kind="restart",
        target="control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)",
        local=True,
        note="pods run on; with one control-plane node the API does not answer for some seconds",
    ),
)


@operation()
def immutable_settings_kept(settings: dict[str, str]) -> Commands:
    """Make sure that the cluster was made with these settings; changes nothing. On the leader.

    Preflight has compared them where the cluster answered; this is for one that answers only now,
    before anything is written that follows from them.

    + settings: of the configuration, see `gpuboot.kubernetes.kubeadm.Configuration`
    """
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    known = executing() or not state.error
    if known and (problems := immutable_changes(state.immutable, settings)):
        yield fail(
            f"a living cluster cannot change this: {'; '.join(problems)}",
            "put the settings back, or reset the cluster (deploys/reset.py) and run again",
        )
        return
    host.noop("there is no cluster yet" if state.error else "the settings are those of the cluster")


@operation()
def reconfigured(digest: str, config: str = CONFIG) -> Commands:
    """Ensure that the control plane and kube-proxy run as the configuration says. On the leader.

    + digest: of the configuration, see `gpuboot.kubernetes.kubeadm.Configuration`
    """
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    if state.error and not executing():
        host.noop("there is no cluster yet")
        return
    if state.config == digest:
        host.noop("the cluster's configuration is in force")
        return
    subject = "control plane's configuration"
    changes.record(
        Change(subject=subject, field="sha256", old=state.config[:12] or None, new=digest[:12]),
        *CONTROL_PLANE,
        Effect(kind="restart", target="DaemonSet kube-system/kube-proxy", note=_RUN_ON),
    )
    path = shlex.quote(config)
    for phase in ("upload-config all", "etcd local", "control-plane all", "addon kube-proxy"):
        yield StringCommand(f"kubeadm init phase {phase} --config {path}")
    yield StringCommand(f"{KUBECTL} -n kube-system rollout restart daemonset kube-proxy")
    yield StringCommand(note(digest))


@operation()
def kubelet_configured(
    node: str,
    leader: str,
    digest: str,
    control_plane: bool = False,
    ignore: Sequence[str] = (),
) -> Commands:
    """Ensure that this host runs as the cluster's configuration says; call it with `_serial=True`.

    + digest: of the part of the configuration that concerns this host
    + ignore: kubeadm's checks to pass over
    + control_plane: its control plane as well as its kubelet, which on the leader is done before
    """
    state = read(Kubeadm, socket=SOCKET)
    if "kubelet.conf" not in state.files or state.started or state.kubelet_config == digest:
        host.noop("the kubelet's configuration is in force")
        return
    subject, old = f"kubelet's configuration of {node}", state.kubelet_config[:12] or None
    changes.record(
        Change(subject=subject, field="sha256", old=old, new=digest[:12]),
        *(CONTROL_PLANE if control_plane else ()),
        KUBELET,
    )
    if control_plane:
        yield StringCommand("kubeadm upgrade node", *_ignored(ignore))
    else:
        yield StringCommand("kubeadm upgrade node phase kubelet-config")
    since = _clock(leader)
    yield StringCommand("systemctl restart kubelet")
    yield from _wait_until_ready(node, leader, "", since)
    yield StringCommand(note_kubelet(digest))


def _clock(leader: str) -> float | None:
    """Now, by the leader's clock; None where the API server does not answer, and in a plan."""
    if not executing():
        return None
    target = host.state.inventory.get_host(leader)
    return remote.read_fact(target, Cluster, kubeconfig=ADMIN_CONF).clock or None


def _wait_until_ready(node: str, leader: str, version: str, since: float | None) -> Commands:
    """Wait until the node is Ready again, with this version of the kubelet where it is given.

    + since: when its kubelet was restarted: what was known before does not count
    """
    if not executing():
        return
    target = host.state.inventory.get_host(leader)

    def probe() -> Progress:
        state = remote.read_fact(target, Cluster, kubeconfig=ADMIN_CONF)
        if version:
            return kubelet_is(state, node, version, since)
        return nodes_ready(state, [node], since)

    end = wait_until(host, probe, 300)
    if not end.done:
        yield fail(unfinished(end, 300), "see `journalctl -u kubelet` on the node, then run again")


@operation()
def upgraded(
    node: str,
    leader: str,
    version: str,
    packages: dict[str, str],
    manager: PackageManager,
    leads: bool = True,
    turn: bool = True,
    ignore: Sequence[str] = (),
) -> Commands:
    """Ensure that this host runs this patch release; call it with `_serial=True` on all hosts.

    Twice, first with `leads`: a step that all hosts share makes the others wait for the leader,
    whose control plane must never be older than a kubelet. Pods run on, so nothing is drained.

    + node: its Kubernetes name; leader: inventory name of the leader
    + leads: whether this host is the leader
    + turn: whether it is this host's turn; else it is only read, so that all hosts answer at once
    + version: Kubernetes version without its v
    + packages: as `gpuboot.kubernetes.kubeadm.packages` gives them, for `manager` to install
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
    if problem := _refused(cluster.server, version) if leads else _too_early(leader, version):
        yield fail(*problem)
        return
    _record_upgrade(f"kubelet of {node}", version, state, cluster.server if leads else None)
    yield from package_operations.installed._inner(packages, manager, hold=True, update=True)
    inform(f"kubeadm upgrades {node} to {version}: up to five minutes")
    command = f"kubeadm upgrade apply --yes v{version}" if leads else "kubeadm upgrade node"
    yield from _upgrade(StringCommand(command, *_ignored(ignore)), node, leader, version, cluster)


def _upgrade(
    command: StringCommand, node: str, leader: str, version: str, cluster: ClusterState
) -> Commands:
    """The upgrade by kubeadm, and the restart of a kubelet whose package has been upgraded."""
    digest = cluster.config
    yield StringCommand(f"mkdir -p /etc/gpuboot && touch {marker('upgrade')} &&", command)
    if digest:
        yield StringCommand(note(digest))  # kubeadm writes its record again, without annotations
    since = _clock(leader)
    yield StringCommand("systemctl daemon-reload && systemctl restart kubelet")
    yield from _wait_until_ready(node, leader, version, since)
    yield StringCommand(f"rm {marker('upgrade')}")


def _is_upgraded(
    state: KubeadmState, packages: Mapping[str, str], server: str, version: str
) -> bool:
    """Whether packages and API server ("" for another host's) are of this release."""
    installed = all(_matches(state.packages.get(name), packages[name]) for name in packages)
    same = not server or upgrade_step(server, version) == "none"
    return installed and same and "upgrade" not in state.started


def _refused(server: str, version: str) -> tuple[str, str] | None:
    """Cause and remedy when no run may bring the control plane to this release."""
    if not server or upgrade_step(server, version) != "refuse":
        return None
    return (
        f"the cluster runs Kubernetes {server}, the version lock asks for {version}",
        "gpuboot moves a cluster to newer patch releases only; for a newer minor release follow "
        "kubernetes.io's kubeadm upgrade guide, then run again",
    )


def _record_upgrade(kubelet: str, version: str, state: KubeadmState, server: str | None) -> None:
    """+ server: version of the leader's control plane; None: the host is not the leader"""
    subject = kubelet if server is None else "control plane"
    old = server or state.packages.get("kubelet")
    controls = server is not None or "manifests/kube-apiserver.yaml" in state.files
    changes.record(
        Change(subject=subject, field="Kubernetes", old=old, new=version),
        *(CONTROL_PLANE if controls else ()),
        KUBELET,
    )


def _too_early(leader: str, version: str) -> tuple[str, str] | None:
    """Cause and remedy when a node may not be upgraded yet; None when it may.

    A kubelet must never be newer than the API server.
    """
    if not executing():
        return None
    state = remote.read_fact(host.state.inventory.get_host(leader), Cluster, kubeconfig=ADMIN_CONF)
    if state.recorded == version:
        return None
    cause = state.error or f"its control plane is of {state.recorded}"
    return (
        f"not upgraded to Kubernetes {version} before {leader} is: {cause}",
        f"fix what {leader} said when it was upgraded, then run again",
    )


def _ignored(checks: Sequence[str]) -> list[QuoteString]:
    return [QuoteString(f"--ignore-preflight-errors={','.join(checks)}")] if checks else []


def _matches(version: str | None, pattern: str) -> bool:
    return version is not None and fnmatchcase(version, pattern)
