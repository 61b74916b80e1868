"""Another driver, container toolkit, containerd or kubelet on the nodes of a living cluster.

Node by node: cordoned, drained, upgraded, rebooted where another module is loaded, proven, let in.
Each step may be repeated, so an upgrade that was interrupted begins again on the same node.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import host

from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail, messages
from deploys.engine.operation import operation
from deploys.engine.remote import RemoteError
from deploys.engine.turns import turn_of
from deploys.parts.cluster.fact import Cluster, Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.cluster.node_drain import Moving
from deploys.parts.containerd import operations as containerd
from deploys.parts.driver import operations as driver
from deploys.parts.driver.fact import Driver, DriverState
from deploys.parts.etcd.members import wait_for_etcd
from deploys.parts.gate import proven_nodes as gate
from deploys.parts.kubeadm import kubelet_upgrade
from deploys.parts.kubeadm.change_operations import clock, wait_until_ready
from deploys.parts.kubeadm.kubelet_upgrade import KubeletPart
from deploys.parts.kubeadm.upgrade_operations import too_early
from deploys.parts.nodes import node_service, node_sharing
from deploys.parts.nodes.node_parts import Parts, difference, installed, missing
from deploys.parts.nodes.node_sharing import Sharing
from deploys.parts.nodes.node_upgrade_costs import move_of_pods, record
from deploys.parts.packages.package_downloads import ready
from deploys.parts.units import operations as units
from gpuboot.cluster import node_upgrade as rules
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.hosts.platforms import PackageManager

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
    resuming: bool = False,
    max_hosts: int = 1,
    control_planes: Sequence[str] = (),
    moving: Moving | None = None,
    proof: node_service.Proof | None = None,
    is_gated: bool = False,
    shares: Sharing | None = None,
) -> Commands:
    """Ensure that a node of a living cluster runs these versions, and is proven with them.

    One that fails stays cordoned, and no other begins. Hosts in no cluster are left alone.

    + node: its Kubernetes name; leader: inventory name of the leader
    + turn: whether it is this host's turn; else it is only read, so that all hosts answer at once
    + resuming: whether it is the turn of nodes that an earlier run left cordoned, or of the others
    + max_hosts: how many nodes may be away at a time; moving: None: pods are never moved away
    + control_planes: inventory names of all, if this host is one
    + is_gated: no pods until it is proven
    + proof: proves its GPUs; None: it has none; shares: what they are to offer, now or later
    """
    state = read(Kubeadm, socket=SOCKET)
    if not turn or "kubelet.conf" not in state.files:
        host.noop("another host's turn" if state.files else "no node of a cluster")
        return
    loaded = read(Driver, timeout_s=driver.SMI_S) if parts.driver else DriverState()
    upgrade = _Upgrade(
        node, leader, parts, manager, difference(parts, manager, loaded, state, node, leader),
        state, loaded.gpus, control_planes, proof, is_gated, shares,
    )  # fmt: skip
    if idle_reason := _idle(upgrade, resuming, loaded.cordoned_by_gpuboot):
        host.noop(idle_reason)
        return
    with turn_of(max_hosts):
        yield from _upgrade(upgrade, moving)


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
    """The upgrade of a host, by arguments of `upgraded`.

    + state: how far kubeadm got on it
    + gpus: UUIDs that nvidia-smi listed before
    + out: it has been taken out of service
    + labels: those by which its GPUs come to be shared otherwise in this stay
    """

    node: str
    leader: str
    parts: Parts
    manager: PackageManager
    differences: rules.Difference
    state: KubeadmState
    gpus: Sequence[str]
    control_planes: Sequence[str]
    proof: node_service.Proof | None
    is_gated: bool
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
        return self.parts.kubelet if self.differences.kubelet_due else None


def _upgrade(upgrade: _Upgrade, moving: Moving | None) -> Commands:
    if upgrade.differences and upgrade.member:
        upgrade.labels = node_sharing.of_stay(upgrade.node, upgrade.leader, upgrade.shares)
    moved = (
        move_of_pods(moving, upgrade.differences, bool(upgrade.labels)) if upgrade.member else {}
    )
    with _failures(upgrade):
        if problem := _refusal(upgrade):
            yield fail(*problem)
            return
        labels = upgrade.labels if moved else {}
        record(upgrade.node, upgrade.leader, upgrade.parts, upgrade.differences, moved, labels)
        if missing_packages := missing(upgrade.parts, upgrade.differences):
            yield from ready(missing_packages, upgrade.manager, f"{upgrade.node} stays as it is")
        yield from _take_out(upgrade, moved)
        yield from installed(upgrade.parts, upgrade.differences, upgrade.manager)
        if kubelet := upgrade.kubelet:
            yield from kubelet_upgrade.installed(
                kubelet, upgrade.node, upgrade.state, upgrade.manager
            )
        yield from _reboot(upgrade)
        yield from _prove(upgrade, shared=bool(moved and upgrade.labels))


def _idle(upgrade: _Upgrade, resuming: bool, cordoned: bool) -> str:
    """Why there is nothing to do in this turn; "" where there is. + cordoned: by gpuboot"""
    if (upgrade.resumed or cordoned) is not resuming:
        return "another operation's turn"
    # an upgrade of kubeadm that was interrupted goes on by itself
    resumed = upgrade.resumed or (resuming and "upgrade" not in upgrade.state.started)
    if upgrade.differences or (resumed and _proves(upgrade)):
        return ""
    return "driver, container toolkit, containerd and kubelet are as they are to be"


def _proves(upgrade: _Upgrade) -> bool:
    """Whether the proof is this phase's: one whose GPUs have to be divided otherwise waits."""
    shares = upgrade.shares
    return shares is None or not node_sharing.pending(upgrade.node, upgrade.leader, shares.offer)


def _refusal(upgrade: _Upgrade) -> tuple[str, str] | None:
    """Cause and remedy where this node's upgrade may not begin."""
    if not (failed_hosts := [name for name in _failed if name != host.name]):
        # one that an upgrade has left broken is what has to be mended
        broken = upgrade.control_planes and upgrade.resumed
        return (
            too_early(upgrade.leader, upgrade.kubelet.version, worker=True)
            if upgrade.kubelet and not broken
            else None
        )
    return (
        f"{upgrade.node} is not upgraded, because {failed_hosts[0]} failed: it stays as it is",
        f"see what {failed_hosts[0]} said, then run again: the upgrade goes on from there",
    )


@contextmanager
def _failures(upgrade: _Upgrade) -> Iterator[None]:
    """Stop other nodes' upgrades, and keep pods off this node, when a command in the block fails.

    pyinfra closes an operation whose command has failed: it does not go on behind its `yield`.
    """
    try:
        yield
    except GeneratorExit:
        if host.state.is_executing:
            if host.name not in _failed:
                _failed.append(host.name)
            if upgrade.out and upgrade.member:
                _keep_out(upgrade)
        raise


def _keep_out(upgrade: _Upgrade) -> None:
    lines = messages.get((host.name, host.executing_op_hash or ""), "a command failed").splitlines()
    reason = f"{upgrade.differences or 'upgrade'}: {lines[0]}"
    try:
        node_service.keep_out(host.state.inventory.get_host(upgrade.leader), upgrade.node, reason)
    except RemoteError as error:
        logger.error(f"{host.print_prefix}{upgrade.node} stays cordoned, without a taint: {error}")
        return
    logger.error(
        f"{host.print_prefix}{upgrade.node} stays cordoned, with the taint {rules.TAINT} and the "
        f"reason as annotation {rules.KEY}; no other node is begun"
    )


def _take_out(upgrade: _Upgrade, moved: dict[str, Any]) -> Commands:
    # one that an upgrade has left broken is what has to be mended
    if upgrade.control_planes and not upgrade.resumed:
        yield FunctionCommand(wait_for_etcd, (list(upgrade.control_planes), 0), {})
    yield StringCommand(f"mkdir -p /etc/gpuboot && touch {node_service.STARTED_MARK}")
    if upgrade.member:
        node, leader = upgrade.node, upgrade.leader
        is_control_plane = bool(upgrade.control_planes)
        yield FunctionCommand(node_service.take_out, (node, leader, is_control_plane, moved), {})
        if upgrade.is_gated:
            reason = "Upgraded", f"{upgrade.differences or 'its upgrade'}: not proven yet"
            yield FunctionCommand(gate.close, (node, leader, *reason, is_control_plane), {})
    upgrade.out = True


def _reboot(upgrade: _Upgrade) -> Commands:
    """Load the driver and start its services; a reboot is needed where another one is loaded."""
    part = upgrade.parts.driver
    if part is None:
        return
    if upgrade.differences.module:
        reason = driver.reboot_reason(upgrade.differences.loaded, part.version)
        if not part.may_reboot:
            yield fail(reason, driver.REBOOT_YOURSELF)
            return
        arguments = (reason, part.reboot_s, upgrade.node, upgrade.leader if upgrade.member else "")
        yield FunctionCommand(driver.rebooted, arguments, {})
    if upgrade.differences.loaded != part.version:
        # after a boot udev may have loaded it; loading it again does nothing
        yield driver.load()
    if part.services:
        yield from units.ensured(part.services)


def _prove(upgrade: _Upgrade, shared: bool) -> Commands:
    """Prove the Ready node, then let pods in. + shared: its GPUs, in another way than before"""
    if upgrade.parts.toolkit:
        yield from containerd.cdi._inner()
    if upgrade.member:
        version = upgrade.kubelet.version if upgrade.kubelet else ""
        yield from wait_until_ready(upgrade.node, upgrade.leader, version, clock(upgrade.leader))
        if upgrade.kubelet:
            yield from kubelet_upgrade.finish(upgrade.control_planes)
        if shared:
            yield FunctionCommand(
                node_sharing.upgraded, (upgrade.node, upgrade.leader, upgrade.shares), {}
            )
        if upgrade.proof:
            differences = upgrade.differences
            before = f"driver {differences.loaded}" if differences.module else "the earlier version"
            yield FunctionCommand(
                node_service.proven, (upgrade.node, upgrade.proof, list(upgrade.gpus), before), {}
            )
        yield FunctionCommand(node_service.let_in, (upgrade.node, upgrade.leader), {})
    else:
        yield StringCommand(f"rm {node_service.STARTED_MARK}")
