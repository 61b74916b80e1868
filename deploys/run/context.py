"""What every phase of a run needs: settings, version lock, nodes, and how the hosts were found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gevent.lock import RLock
from pyinfra.api.exceptions import DeployError
from pyinfra.api.inventory import Inventory
from pyinfra.context import host
from pyinfra.context import state as run_state

from deploys.engine.connections import unreachable, unreachable_problem
from deploys.engine.start_problems import refusal
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.run import topology
from deploys.run.collect import collect, with_mig_profiles
from gpuboot.cluster import endpoint
from gpuboot.config.inventory import Node, led, plan
from gpuboot.config.problems import Problem, render
from gpuboot.config.settings import Settings, SettingsError, valid_parts
from gpuboot.config.settings.upgrade import unknown_groups
from gpuboot.config.versions import Lock
from gpuboot.hosts import gpu_choice, gpu_sharing, platforms, sharing_checks
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.package_rehearsal import Rehearsal
from gpuboot.hosts.platforms import Platform
from gpuboot.preflight import docker_inventory as docker_inventory
from gpuboot.preflight import network_problems
from gpuboot.site.load_site import load

_SETTLE_S = 600  # how long a run waits for a package manager or cloud-init at work


@dataclass(frozen=True)
class Context:
    """A host's view of the run.

    + states: what preflight read, by inventory name. Hosts outside `--limit` that cannot be
      reached are missing. It is the state before the run: read facts again at execute time.
    """

    settings: Settings
    lock: Lock
    nodes: tuple[Node, ...]
    node: Node
    states: Mapping[str, NodeState]

    @property
    def state(self) -> NodeState:
        """How preflight found the current host."""
        return self.states[self.node.host]

    @property
    def platform(self) -> Platform:
        """The current host's platform; preflight lets no host through that has none."""
        return platforms.of(self.state)

    @property
    def present(self) -> tuple[Node, ...]:
        """The nodes that this run has read, less those that failed since: it waits for these."""
        failed = {host.name for host in run_state.failed_hosts}
        return tuple(
            node for node in self.nodes if node.host in self.states and node.host not in failed
        )

    @property
    def is_member(self) -> bool:
        """Whether the current host, a control plane, was part of the cluster before this run."""
        return self.node.host in members(self.states)

    @property
    def leader(self) -> Node:
        """The node that makes the cluster. Raises `DeployError` for Docker hosts."""
        return cluster_leader(self.nodes)


def cluster_leader(nodes: Iterable[Node]) -> Node:
    """The node that makes the cluster. Raises `DeployError` for Docker hosts, which have none."""
    for node in nodes:
        if node.leader:
            return node
    cause = "the inventory is of Docker hosts: there is no cluster"
    raise DeployError(render([Problem("", cause, "name an inventory with a control plane")]))


@dataclass
class Run:
    """What is worked out once per run, whichever host's greenlet comes first."""

    inventory: Inventory
    settings: Settings
    lock: Lock
    nodes: tuple[Node, ...]
    docker_hosts: bool = False  # instead of a cluster
    states: dict[str, NodeState] = field(default_factory=dict)
    unread: list[Problem] = field(default_factory=list)
    collected: bool = False
    by_host: dict[str, Node] = field(default_factory=dict)
    controls: dict[str, NodeState] | None = (
        None  # states of control planes, where only they are read
    )
    verdict: str | None = None  # preflight's: None before it, "" when all is well
    rehearsals: dict[str, Rehearsal] = field(default_factory=dict)  # of hosts that lack packages

    @property
    def missing(self) -> list[str]:
        """Inventory names of hosts that this run goes on without: they cannot be reached."""
        unread_hosts = [node.host for node in self.nodes if node.host not in self.states]
        return [name for name in unread_hosts if name in unreachable]


_run: Run | None = None
_failure: str | None = None
_once = RLock()


def begin() -> tuple[Settings, Lock, tuple[Node, ...]]:
    """Check the inventory and its settings, once per run.

    Raises `DeployError` that names every mistake: nothing has been changed then.
    """
    run = _begin()
    return run.settings, run.lock, run.nodes


def current_run() -> Run:
    """The run as far as it has come, with the state of the hosts that it has read."""
    return _begin()


def current() -> Context:
    """The context of the host whose phase is being prepared or executed.

    Reads all hosts on its first call; raises `DeployError` for hosts that cannot be read.
    """
    run = read()
    if run.unread:
        raise DeployError(render(run.unread))
    return Context(run.settings, run.lock, run.nodes, run.by_host[host.name], run.states)


def read() -> Run:
    """The run with the state of every host that could be read, once per run."""
    with _once:
        run = _begin()
        if not run.collected:
            run.states, run.unread = collect(
                run.inventory,
                [node.host for node in run.nodes],
                _SETTLE_S,
                spared=[node.host for node in run.nodes if _spared(node)],
            )
            run.nodes = tuple(_with_address(node, run.states) for node in run.nodes)
            driver = run.lock.driver if run.settings.driver.enabled else None
            run.states |= {
                node.host: gpu_choice.choose(node, run.states[node.host], driver)
                for node in run.nodes
                if node.host in run.states
            }
            mig_hosts = [node.host for node in run.nodes if gpu_sharing.layout(node, run.settings)]
            mig_states = {host: run.states[host] for host in mig_hosts if host in run.states}
            run.states |= with_mig_profiles(run.inventory, mig_states)
            if any(node.leader for node in run.nodes):
                _lead(run)
            run.by_host = {node.host: node for node in run.nodes}
            run.collected = True
        return run


def read_leader(without: str = "") -> Node:
    """The leader, for a deploy that needs no other host's state: only control planes are asked.

    + without: name of a node that is not to lead, because it is about to leave

    Raises `DeployError` for Docker hosts.
    """
    with _once:
        run = _begin()
        controls = {node.host: node for node in run.nodes if node.role == "control_plane"}
        if len(controls) > 1 and run.controls is None:
            run.controls, _ = collect(run.inventory, controls, wait_s=0, spared=controls)
        member_hosts = members(run.controls or {})
        stay = [name for name in member_hosts if without not in (name, controls[name].name)]
        return cluster_leader(led(run.nodes, stay or member_hosts, _led_at(run.controls or {})))


def members(states: Mapping[str, NodeState]) -> list[str]:
    """Inventory names of the control planes that are part of a cluster. + states: by that name"""
    return [
        name
        for name, state in states.items()
        if ADMIN_CONF in state.kubeconfigs and not state.half_made
    ]


def _led_at(states: Mapping[str, NodeState]) -> dict[str, int]:
    return {name: state.led_at for name, state in states.items()}


def _lead(run: Run) -> None:
    """Choose the leader, and what nodes reach the API by, now that the hosts have been read.

    No cluster is made while a control plane does not answer: it may be the one that has it.
    """
    member_hosts = members(run.states)
    run.nodes = led(run.nodes, member_hosts, _led_at(run.states))
    if not member_hosts:
        run.unread += [
            unreachable_problem(node.host)
            for node in run.nodes
            if node.role == "control_plane" and node.host in run.missing
        ]
    leader = run.states.get(cluster_leader(run.nodes).host)
    server = leader.kubeconfigs.get(ADMIN_CONF, "") if leader else ""
    cluster = endpoint.decided(run.settings.cluster, server)
    run.settings = run.settings.model_copy(update={"cluster": cluster})


def _spared(node: Node) -> bool:
    """Whether hosts are read without a node that cannot be reached: `_lead` judges that."""
    return not node.monitor


def _with_address(node: Node, states: Mapping[str, NodeState]) -> Node:
    if node.address or node.host not in states:
        return node
    return replace(node, address=states[node.host].default_address)


def _begin() -> Run:
    global _run, _failure
    with _once:
        if _failure is not None:
            raise DeployError(_failure)
        source = topology.inventory()
        if _run is None or _run.inventory is not source:
            try:
                _run = _checked(source)
            except DeployError as error:
                _failure = str(error)
                raise
        return _run


def _checked(source: Inventory) -> Run:
    data, problems = topology.settings_data(source)
    settings, lock, docker_hosts = Settings(), None, topology.docker_hosts(source)
    try:
        settings, lock = load(data, docker_hosts)
    except SettingsError as error:
        problems += error.problems
    entries = topology.read(source)
    nodes, plan_problems = (
        docker_inventory.plan(entries) if docker_hosts else plan(entries, settings.cluster.endpoint)
    )
    problems += plan_problems
    if not docker_hosts:
        problems += network_problems.room(nodes, settings)
        groups = {group for entry in entries for group in entry.groups}
        problems += unknown_groups(settings.upgrade.max_unavailable, groups)
    valid_settings = settings if lock else valid_parts(data)
    problems += sharing_checks.of_inventory(valid_settings, nodes)
    if problems or lock is None:
        raise DeployError(refusal(problems))
    return Run(source, settings, lock, nodes, docker_hosts)
