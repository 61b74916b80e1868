"""What the hosts say to a verification: all GPU nodes and control planes, many at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import gevent
from gevent.pool import Pool
from pyinfra import logger
from pyinfra.context import inventory

from deploys.facts.backup import EtcdBackups
from deploys.facts.batch import Request, Unanswered
from deploys.facts.host_checks import HostChecks
from deploys.facts.kubeadm import Kubeadm
from deploys.facts.mig import MigProfiles
from deploys.facts.node import NodeFact
from deploys.facts.nvidia import NvidiaFact
from deploys.facts.outside_name import OutsideName
from deploys.lib import answers
from deploys.operations.kubeadm import SOCKET
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import DriverLock, Lock
from gpuboot.hosts import gpu_choice, sharing
from gpuboot.hosts.node_state import NodeState
from gpuboot.verify import gpu_state, outside_name
from gpuboot.verify.control_plane import ControlPlane
from gpuboot.verify.evidence import Host
from gpuboot.verify.levels import ALL, Scope

_MAX_AT_ONCE = 32


@dataclass(frozen=True)
class Found:
    """The inventory's nodes with their addresses.

    + states: of hosts that were read a moment ago, by inventory name
    """

    nodes: Sequence[Node]
    states: Mapping[str, NodeState] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """What the hosts say: nodes with their addresses, and the state of those with GPUs."""

    nodes: Sequence[Node]
    hosts: list[Host]
    control_planes: list[ControlPlane]
    seconds: float


def read_site(
    settings: Settings, lock: Lock, find: Callable[[], Found], scope: Scope = ALL
) -> Site:
    """Read all that a verification asks of hosts. + scope: of the GPU nodes, which are read"""
    begun, found = time.monotonic(), find()
    control_planes = gevent.spawn(_read_control_planes, settings, found)
    hosts = read_hosts(settings, lock, found, scope, outside_name.of_site(settings))
    return Site(found.nodes, hosts, control_planes.get(), time.monotonic() - begun)


def _read_control_planes(settings: Settings, found: Found) -> list[ControlPlane]:
    """Their certificates and backups, each by one command."""
    nodes = [node for node in found.nodes if node.role == "control_plane"]
    folder = settings.backup.folder
    return list(Pool(len(nodes)).map(lambda node: _read_control_plane(node, folder), nodes))


def _read_control_plane(node: Node, folder: str) -> ControlPlane:
    kubeadm = Request(Kubeadm, (("socket", SOCKET),))
    backups = Request(EtcdBackups, (("folder", folder),))
    target = inventory.get_host(node.host)
    said = answers.ask(target, [kubeadm, backups])
    for answer in said.values():
        if isinstance(answer, Unanswered):
            return ControlPlane(node=node.name, error=f"it could not be read: {answer}")
    state = said[kubeadm]
    return ControlPlane(
        node=node.name,
        certificates=state.certificates,
        backups=said[backups],
        clock=state.clock,
    )


def say(line: str) -> None:
    """Progress, where it disturbs no JSON."""
    logger.info(f"verify: {line}")


def read_hosts(
    settings: Settings, lock: Lock, found: Found, scope: Scope = ALL, name: str = ""
) -> list[Host]:
    """Read the GPU nodes of the scope, many at once, each by one command.

    + name: beyond the cluster, which they have to resolve; "": none
    """
    gpu_nodes = scope.chosen(found.nodes)
    driver = lock.driver if settings.driver.enabled else None
    say(f"reading {len(gpu_nodes)} GPU nodes")
    pool = Pool(min(len(gpu_nodes), _MAX_AT_ONCE) or 1)
    return list(
        pool.map(lambda node: read_host(node, driver, found.states, settings, name), gpu_nodes)
    )


def read_host(
    node: Node,
    driver: DriverLock | None,
    states: Mapping[str, NodeState],
    settings: Settings,
    name: str = "",
) -> Host:
    """Read one GPU node.

    + driver: the version that the lock asks for; None where gpuboot installs none
    + states: of hosts that were read a moment ago, by inventory name
    + name: beyond the cluster, which it has to resolve; "": none
    """
    state, gpus, checks = (Request(fact, ()) for fact in (NodeFact, NvidiaFact, HostChecks))
    known = {state: states[node.host]} if node.host in states else {}
    outside = [Request(OutsideName, (("domain", name),))] if name else []
    profiles = [Request(MigProfiles, ())] if sharing.layout(node, settings) else []
    asked = [
        request for request in (state, gpus, checks, *outside, *profiles) if request not in known
    ]
    target = inventory.get_host(node.host)
    begun = time.time()
    said = known | answers.ask(target, asked)
    printed = said.pop(checks)
    [resolves] = [said.pop(request) for request in outside] or [""]
    [driver_profiles] = [said.pop(request) for request in profiles] or [{}]
    for answer in said.values():
        if isinstance(answer, Unanswered):
            why = "its state could not be read" if target.connected else "cannot be reached"
            return gpu_state.unreachable_host(node, f"{why}: {answer}")
    chosen = gpu_choice.choose(node, said[state], driver)
    found = gpu_state.host(node, chosen, said[gpus], driver.version if driver else None)
    found = replace(found, outside="" if isinstance(resolves, Unanswered) else resolves)
    told = None if isinstance(driver_profiles, Unanswered) else driver_profiles
    found = replace(found, **sharing.promised(node, settings, chosen.gpu_ids, told))
    if isinstance(printed, Unanswered):
        return replace(found, printed={})
    ended = time.time()
    timed = {name: replace(one, asked=begun, answered=ended) for name, one in printed.items()}
    return replace(found, printed=timed)
