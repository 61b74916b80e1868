"""Reads the state of all hosts at once, in pyinfra's prepare stage, waiting for busy ones."""

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from gevent.event import Event
from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import get_fact
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.context import state as run_state

from deploys.engine import connections, privilege
from deploys.engine.current_host import current_host
from deploys.engine.shell import run_command
from deploys.engine.spans import span
from deploys.parts.mig.fact import MigProfiles
from deploys.parts.node.fact import NodeFact
from deploys.run import deploy_kinds as kinds
from gpuboot.config.problems import Problem
from gpuboot.hosts.driver_mig import DriverProfiles
from gpuboot.hosts.host_clock import skew
from gpuboot.hosts.node_state import NodeState

POLL_S = 5.0
_MAX_AT_ONCE = 32


def collect(
    inventory: Inventory, hosts: Iterable[str], wait_s: int, spared: Collection[str] = ()
) -> tuple[dict[str, NodeState], list[Problem]]:
    """The state of each host, and a problem for each that could not be read.

    + hosts: inventory names; the first is a control plane or the monitoring host
    + wait_s: how long to wait for a host whose package manager or cloud-init is at work
    + spared: those that a run goes on without when they cannot be reached

    A run that may change something does not wait where another one is at work: it is going to end.
    A host outside `--limit` that cannot be reached is left out without a problem, unless it leads.
    """
    names = list(hosts)
    pool = Pool(min(len(names), _MAX_AT_ONCE) or 1)
    locked = Event()
    with span("read hosts"):
        answers = pool.map(
            lambda name: _read_settled(inventory.get_host(name), wait_s, locked), names
        )
    limit = run_state.limit_hosts
    states: dict[str, NodeState] = {}
    problems: list[Problem] = []
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, NodeState):
            states[name] = answer
        elif name in spared and name in connections.unreachable:
            continue
        elif not isinstance(limit, list) or name == names[0] or inventory.get_host(name) in limit:
            problems.append(answer)
    return states, problems


def busy(state: NodeState) -> str:
    """What keeps a host from being worked on right now; "" when nothing does."""
    if state.package_lock_holders:
        return f"package manager in use by {', '.join(state.package_lock_holders)}"
    return "cloud-init is running" if state.cloud_init == "running" else ""


def _read_settled(host: Host, wait_s: int, locked: Event) -> NodeState | Problem:
    started = time.monotonic()
    last_reason = ""
    while True:
        with span("read hosts", host.name):
            answer = _read(host)
        if isinstance(answer, Problem):
            return answer
        if answer.run_lock_age is not None and kinds.may_change():
            locked.set()
        reason = busy(answer)
        waited = time.monotonic() - started
        if not reason or waited >= wait_s or locked.is_set():
            return answer
        if reason != last_reason:
            print(f"    [{host.name}] waiting: {reason} (at most {wait_s} s)", file=sys.stderr)
            last_reason = reason
        with span(reason, host.name, wait=True):
            locked.wait(POLL_S)


def _read(host: Host) -> NodeState | Problem:
    if host.name in connections.unreachable:
        return connections.unreachable_problem(host.name)
    # The host's own context: facts and sudo look at it, not at the host whose greenlet this is.
    with current_host(host):
        try:
            if not host.connected:
                host.connect(reason="to read its state", raise_exceptions=True)
            if denied := denied_root(host):
                return denied
            privilege.prepare_askpass(host)
            before = time.time()
            state = get_fact(run_state, host, NodeFact, apply_failed_hosts=False)
            after = time.time()
        except PyinfraError as error:
            connections.note_unreachable(host.name, error)
            return connections.unreachable_problem(host.name)
    if not isinstance(state, NodeState):
        return Problem(
            host.name,
            "its state could not be read (the command's own message stands above)",
            "check that its user may become root (a wrong sudo password?)",
        )
    return replace(state, clock_skew_s=skew(state.clock, before, after))


def with_mig_profiles(
    inventory: Inventory, states: Mapping[str, NodeState]
) -> dict[str, NodeState]:
    """The states of hosts with the MIG profiles that their drivers have, where one is loaded.

    + states: by inventory name
    """
    pool = Pool(min(len(states), _MAX_AT_ONCE) or 1)
    loaded_states = {name: state for name, state in states.items() if state.driver_loaded}
    answers = pool.map(lambda name: _mig_profiles(inventory.get_host(name)), loaded_states)
    return {
        name: replace(state, mig_profiles=profiles)
        for (name, state), profiles in zip(loaded_states.items(), answers, strict=True)
    }


def _mig_profiles(host: Host) -> DriverProfiles:
    """The profiles that the driver lists; none where it cannot tell: a proof asks again."""
    with current_host(host):
        try:
            return get_fact(run_state, host, MigProfiles, apply_failed_hosts=False) or {}
        except PyinfraError:
            return {}


def denied_root(host: Host) -> Problem | None:
    """A problem when sudo wants a password that nobody gave: pyinfra would ask, in mid-run."""
    arguments = privilege.become_arguments(host)
    if not arguments.get("_sudo") or arguments.get("_sudo_password"):
        return None
    # its message is kept back: pyinfra would take it for a question and ask for a password
    output = run_command(
        host,
        "if ! command -v sudo >/dev/null; then echo none; "
        "elif ! sudo -n true 2>/dev/null; then echo denied; fi",
    ).stdout
    if output == "none":
        return Problem(
            host.name,
            "commands are to run by sudo, which is not installed there",
            "install sudo, or set _sudo = False in the host's data when its user is root",
        )
    if output == "denied":
        return Problem(
            host.name,
            "its user may not become root without a password",
            "allow it (NOPASSWD in sudoers), or run with --same-sudo-password",
        )
    return None
