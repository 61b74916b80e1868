"""Another driver, container toolkit, containerd or kubelet on the nodes of a living cluster.

Node by node: cordoned, drained, upgraded, rebooted where another module is loaded, proven, let in.
Each step may be repeated, so an upgrade that was interrupted begins again on the same node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import host

from deploys.facts.driver import Driver, DriverState
from deploys.facts.kubeadm import Cluster, Kubeadm
from deploys.lib import gate, node_service, node_sharing
from deploys.lib.answers import read
from deploys.lib.commands import Commands, fail, messages
from deploys.lib.drain import Moving
from deploys.lib.etcd import wait_for_etcd
from deploys.lib.kubectl import ADMIN_CONF
from deploys.lib.node_sharing import Sharing
from deploys.lib.operation import operation
from deploys.lib.package_downloads import ready
from deploys.lib.remote import RemoteError
from deploys.lib.turns import turn_of
from deploys.operations import containerd, driver, kubelet_upgrade, units
from deploys.operations.kubeadm import SOCKET
from deploys.operations.kubeadm_changes import clock, wait_until_ready
from deploys.operations.kubeadm_upgrade import too_early
from deploys.operations.kubelet_upgrade import KubeletPart
from deploys.operations.node_parts import Parts, difference, installed, missing
from deploys.operations.node_upgrade_costs import record
from gpuboot.hosts.platforms import PackageManager
from gpuboot.kubernetes import node_upgrade as rules
from gpuboot.kubernetes.cluster_state import KubeadmState

_STEP = "node-upgrade"
# inventory names of nodes whose upgrade failed in this run
_failed: list[str] = []


@operation()
def upgraded(
    node: str,
    leader: str,
    parts: Parts,
    manager: PackageManager,
    turn: bool = True,
    begun: bool = False,
    several: int = 1,
    control_planes: Sequence[str] = (),
    moving: Moving | None = None,
    proof: node_service.Proof | None = None,
    gated: bool = False,
    shares: Sharing | None = None,
) -> Commands:
    """Ensure that a node of a living cluster runs these versions, and is proven with them.

    One that fails stays cordoned, and no other begins. Hosts in no cluster are left alone.

    + node: its Kubernetes name; leader: inventory name of the leader
    + turn: whether it is this host's turn; else it is only read, so that all hosts answer at once
    + begun: whether it is the turn of nodes that an earlier run left cordoned, or of the others
    + several: how many nodes may be away at a time; moving: None: pods are never moved away
    + control_planes: inventory names of all, if this host is one; gated: no pods until it is proven
    + proof: proves its GPUs; None: it has none; shares: what they are to offer, now or later
    """
    state = read(Kubeadm, socket=SOCKET)
    if not turn or "kubelet.conf" not in state.files:
        host.noop("another host's turn" if state.files else "no node of a cluster")
        return
    loaded = read(Driver, timeout_s=driver.SMI_S) if parts.driver else DriverState()
    found = difference(parts, manager, loaded, state, node, leader)
    if why := _idle(state, loaded, begun, bool(found), partial(_proves, node, leader, shares)):
        host.noop(why)
        return
    it = _Upgrade(
        node, leader, parts, manager, found, state, loaded.gpus, control_planes, proof, gated,
        shares,
    )  # fmt: skip
    with turn_of(several):
        yield from _upgrade(it, moving)


@operation()
def all_proven() -> Commands:
    """End the run on this host, the leader, where the upgrade of a node has failed.

    Pods that belong on a node that takes none are not worth a wait.
    """
    read(Cluster, kubeconfig=ADMIN_CONF)  # so the run comes here whatever changes, wherever
    if not _failed:
        host.noop("no upgrade of a node has failed")
        return
    yield fail(
        f"the upgrade of {_failed[0]} failed, so the run ends here",
        "see what was said there, then run again",
    )


@dataclass
class _Upgrade:
    """One host's, by arguments of `upgraded`.

    + state: how far kubeadm got on it
    + gpus: UUIDs that nvidia-smi listed before
    + out: it has been taken out of service
    + labels: those by which its GPUs come to be shared otherwise in this stay
    """

    node: str
    leader: str
    parts: Parts
    manager: PackageManager
    found: rules.Difference
    state: KubeadmState
    gpus: Sequence[str]
    control_planes: Sequence[str]
    proof: node_service.Proof | None
    gated: bool
    shares: Sharing | None = None
    out: bool = False
    labels: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def member(self) -> bool:
        """Whether kubeadm has finished here, so that there is a node."""
        return not {"init", "join"} & set(self.state.started)

    @property
    def resumed(self) -> bool:
        """Whether an earlier run began."""
        return _STEP in self.state.started

    @property
    def kubelet(self) -> KubeletPart | None:
        """The kubelet, where it is to be upgraded."""
        return self.parts.kubelet if self.found.kubelet_due else None


def _upgrade(it: _Upgrade, moving: Moving | None) -> Commands:
    if it.found and it.member:
        it.labels = node_sharing.of_stay(it.node, it.leader, it.shares)
    moved = _moved(moving, it.found, bool(it.labels)) if it.member else {}
    with _failures(it):
        if problem := _refused(it):
            yield fail(*problem)
            return
        record(it.node, it.leader, it.parts, it.found, moved, it.labels if moved else {})
        if missing_packages := missing(it.parts, it.found):
            yield from ready(missing_packages, it.manager, f"{it.node} stays as it is")
        yield from _take_out(it, moved)
        yield from installed(it.parts, it.found, it.manager)
        if kubelet := it.kubelet:
            yield from kubelet_upgrade.installed(kubelet, it.node, it.state, it.manager)
        yield from _reboot(it)
        yield from _prove(it, shared=bool(moved and it.labels))


def _idle(
    state: KubeadmState, loaded: DriverState, begun: bool, lacks: bool, proves: Callable[[], bool]
) -> str:
    """Why there is nothing to do in this turn; "" where there is.

    + lacks: whether the node lacks something; proves: whether its proof is this phase's
    """
    marked = _STEP in state.started
    if (marked or loaded.cordoned_by_gpuboot) is not begun:
        return "another operation's turn"
    # an upgrade of kubeadm that was interrupted goes on by itself
    resumed = marked or (begun and "upgrade" not in state.started)
    if lacks or (resumed and proves()):
        return ""
    return "driver, container toolkit, containerd and kubelet are as they are to be"


def _proves(node: str, leader: str, shares: Sharing | None) -> bool:
    """Whether the proof is this phase's: one whose GPUs have to be divided otherwise waits."""
    return shares is None or not node_sharing.pending(node, leader, shares.offer)


def _moved(moving: Moving | None, found: rules.Difference, shares: bool = False) -> dict[str, Any]:
    """How pods are moved away: arguments of `drain`; nothing: they stay.

    + shares: its GPUs come to be shared otherwise
    """
    if moving is None or moving.drain == "never":
        return {}
    return moving.moved() if shares or found.drained(moving.drain) else {}


def _refused(it: _Upgrade) -> tuple[str, str] | None:
    """Cause and remedy where this node's upgrade may not begin."""
    if not (others := [name for name in _failed if name != host.name]):
        # one that an upgrade has left broken is what has to be mended
        broken = it.control_planes and it.resumed
        return (
            too_early(it.leader, it.kubelet.version, worker=True)
            if it.kubelet and not broken
            else None
        )
    return (
        f"{it.node} is not upgraded, because {others[0]} failed: it stays as it is",
        f"see what {others[0]} said, then run again: the upgrade goes on from there",
    )


@contextmanager
def _failures(it: _Upgrade) -> Iterator[None]:
    """Within it, a command that fails stops the upgrade of other nodes, and keeps pods off this.

    pyinfra closes an operation whose command has failed: it does not go on behind its `yield`.
    """
    try:
        yield
    except GeneratorExit:
        if host.state.is_executing:
            if host.name not in _failed:
                _failed.append(host.name)
            if it.out and it.member:
                _keep_out(it)
        raise


def _keep_out(it: _Upgrade) -> None:
    said = messages.get((host.name, host.executing_op_hash or ""), "a command failed").splitlines()
    reason = f"{it.found or 'upgrade'}: {said[0]}"
    try:
        node_service.keep_out(host.state.inventory.get_host(it.leader), it.node, reason)
    except RemoteError as error:
        logger.error(f"{host.print_prefix}{it.node} stays cordoned, without a taint: {error}")
        return
    logger.error(
        f"{host.print_prefix}{it.node} stays cordoned, with the taint {rules.TAINT} and the reason "
        f"as annotation {rules.KEY}; no other node is begun"
    )


def _take_out(it: _Upgrade, moved: dict[str, Any]) -> Commands:
    # one that an upgrade has left broken is what has to be mended
    if it.control_planes and not it.resumed:
        yield FunctionCommand(wait_for_etcd, (list(it.control_planes), 0), {})
    yield StringCommand(f"mkdir -p /etc/gpuboot && touch {node_service.BEGUN}")
    if it.member:
        alone = bool(it.control_planes)
        yield FunctionCommand(node_service.take_out, (it.node, it.leader, alone, moved), {})
        if it.gated:
            why = "Upgraded", f"{it.found or 'its upgrade'}: not proven yet"
            yield FunctionCommand(gate.close, (it.node, it.leader, *why, alone), {})
    it.out = True


def _reboot(it: _Upgrade) -> Commands:
    """The driver loaded, with its services; only where another one is does that take a reboot."""
    part = it.parts.driver
    if part is None:
        return
    if it.found.module:
        reason = driver.reboot_reason(it.found.loaded, part.version)
        if not part.may_reboot:
            yield fail(reason, driver.REBOOT_YOURSELF)
            return
        arguments = (reason, part.reboot_s, it.node, it.leader if it.member else "")
        yield FunctionCommand(driver.rebooted, arguments, {})
    if it.found.loaded != part.version:
        # after a boot udev may have loaded it; loading it again does nothing
        yield driver.load()
    if part.services:
        yield from units.ensured(part.services)


def _prove(it: _Upgrade, shared: bool) -> Commands:
    """The node Ready with all of its GPUs, and then in service. + shared: otherwise than before"""
    if it.parts.toolkit:
        yield from containerd.cdi._inner()
    if it.member:
        version = it.kubelet.version if it.kubelet else ""
        yield from wait_until_ready(it.node, it.leader, version, clock(it.leader))
        if it.kubelet:
            yield from kubelet_upgrade.ended(it.control_planes)
        if shared:
            yield FunctionCommand(node_sharing.upgraded, (it.node, it.leader, it.shares), {})
        if it.proof:
            before = f"driver {it.found.loaded}" if it.found.module else "the earlier version"
            yield FunctionCommand(
                node_service.proven, (it.node, it.proof, list(it.gpus), before), {}
            )
        yield FunctionCommand(node_service.let_in, (it.node, it.leader), {})
    else:
        yield StringCommand(f"rm {node_service.BEGUN}")
