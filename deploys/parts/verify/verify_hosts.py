"""What the hosts say to a verification: all GPU nodes and control planes, many at once."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import gevent
from gevent.pool import Pool
from pyinfra import logger
from pyinfra.context import inventory

from deploys.engine import answers
from deploys.engine.batch import Request, Unanswered
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.driver.nvidia_fact import NvidiaFact
from deploys.parts.etcd.fact import EtcdBackups
from deploys.parts.mig.fact import MigProfiles
from deploys.parts.node.fact import NodeFact
from deploys.parts.node.outside_name_fact import OutsideName
from deploys.parts.verify.fact import HostChecks
from gpuboot.cluster.backup import FOLDER
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import DriverLock, Lock
from gpuboot.hosts import gpu_choice, gpu_sharing
from gpuboot.hosts.node_state import NodeState
from gpuboot.verify import gpu_state, outside_name
from gpuboot.verify.checks.one_file import CommandOutput
from gpuboot.verify.control_plane import ControlPlane
from gpuboot.verify.devices import Host
from gpuboot.verify.levels import ALL, Scope

_MAX_AT_ONCE = 32


@dataclass(frozen=True)
class Discovery:
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
    settings: Settings, lock: Lock, find: Callable[[], Discovery], scope: Scope = ALL
) -> Site:
    """Read all that a verification asks of hosts. + scope: of the GPU nodes, which are read"""
    monotonic_start, discovery = time.monotonic(), find()
    control_planes = gevent.spawn(_read_control_planes, discovery)
    hosts = read_hosts(settings, lock, discovery, scope, outside_name.of_site(settings))
    return Site(discovery.nodes, hosts, control_planes.get(), time.monotonic() - monotonic_start)


def _read_control_planes(discovery: Discovery) -> list[ControlPlane]:
    """Read the control planes' certificates and backups, each by one command."""
    nodes = [node for node in discovery.nodes if node.role == "control_plane"]
    return list(Pool(len(nodes)).map(_read_control_plane, nodes))


def _read_control_plane(node: Node) -> ControlPlane:
    kubeadm = Request(Kubeadm, (("socket", SOCKET),))
    backups = Request(EtcdBackups, (("folder", FOLDER),))
    target = inventory.get_host(node.host)
    values = answers.fetch_answers(target, [kubeadm, backups])
    for answer in values.values():
        if isinstance(answer, Unanswered):
            return ControlPlane(node=node.name, error=f"it could not be read: {answer}")
    state = values[kubeadm]
    return ControlPlane(
        node=node.name,
        certificates=state.certificates,
        backups=values[backups],
        clock=state.clock,
    )


def say(line: str) -> None:
    """Print progress, where it disturbs no JSON."""
    logger.info(f"verify: {line}")


def read_hosts(
    settings: Settings, lock: Lock, discovery: Discovery, scope: Scope = ALL, name: str = ""
) -> list[Host]:
    """Read the GPU nodes of the scope, many at once, each by one command.

    + name: beyond the cluster, which they have to resolve; "": none
    """
    gpu_nodes = scope.selected(discovery.nodes)
    driver = lock.driver if settings.driver.enabled else None
    say(f"reading {len(gpu_nodes)} GPU nodes")
    pool = Pool(min(len(gpu_nodes), _MAX_AT_ONCE) or 1)
    return list(
        pool.map(lambda node: read_host(node, driver, discovery.states, settings, name), gpu_nodes)
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
    cache = {state: states[node.host]} if node.host in states else {}
    outside = [Request(OutsideName, (("domain", name),))] if name else []
    profiles = [Request(MigProfiles, ())] if gpu_sharing.layout(node, settings) else []
    requests = [item for item in (state, gpus, checks, *outside, *profiles) if item not in cache]
    target = inventory.get_host(node.host)
    started_at = time.time()
    values = cache | answers.fetch_answers(target, requests)
    check_outputs = values.pop(checks)
    [resolves] = [values.pop(request) for request in outside] or [""]
    [driver_profiles] = [values.pop(request) for request in profiles] or [{}]
    for answer in values.values():
        if isinstance(answer, Unanswered):
            reason = "its state could not be read" if target.connected else "cannot be reached"
            return gpu_state.unreachable_host(node, f"{reason}: {answer}")
    gpu_selection = gpu_choice.choose(node, values[state], driver)
    evidence = gpu_state.host(node, gpu_selection, values[gpus], driver.version if driver else None)
    evidence = replace(evidence, outside="" if isinstance(resolves, Unanswered) else resolves)
    reported_profiles = None if isinstance(driver_profiles, Unanswered) else driver_profiles
    evidence = replace(
        evidence,
        **gpu_sharing.expected_share(node, settings, gpu_selection.gpu_ids, reported_profiles),
    )
    return replace(evidence, outputs=_timed_outputs(check_outputs, started_at))


def _timed_outputs(
    outputs: Mapping[str, CommandOutput] | Unanswered, started_at: float
) -> dict[str, CommandOutput]:
    if isinstance(outputs, Unanswered):
        return {}
    ended_at = time.time()
    return {
        name: replace(check_output, requested=started_at, answered=ended_at)
        for name, check_output in outputs.items()
    }
