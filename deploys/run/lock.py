"""One run at a time changes a site: the lock on the hosts that lead it, held while a run executes.

It is taken when all is compared and something is to be changed, so a run that changes nothing, a
dry one and a verification neither wait for it nor pay for it. It lies on every control-plane node
that answers, since another one may lead the next run; for Docker hosts on the one that runs
Prometheus. A process there holds it (lock.sh), fed by a byte now and then: the kernel gives it back
when a run is killed, its host reboots or its connection ends. A run that needs its host rebooted
takes it again.
"""

from __future__ import annotations

import getpass
import shlex
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import gevent
from gevent.event import Event
from pyinfra import logger
from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State
from pyinfra_cli.exceptions import CliError

from deploys.lib import open_command
from deploys.lib.connections import reach
from deploys.lib.findings import refusal
from deploys.lib.open_command import GONE, OpenCommand
from deploys.run import compare, context
from gpuboot.config.problems import Problem
from gpuboot.hosts import run_lock
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.run_lock import BEAT_S, Answer, Holder

SCRIPT = resources.files("deploys.run").joinpath("lock.sh").read_text()
_ANSWER_S = 30.0
_LOOK_S = 1.0  # between two looks whether it is still ours


class LockError(CliError):  # type: ignore[misc]  # pyinfra's command line has no types
    """Another run is at work, or was since this one read the hosts: this one ends."""


class Lease:
    """The lock of one host.

    + seen: the record that this run read there before it decided what to do; None: it read none
    """

    def __init__(self, host: Host, mine: Holder, seen: str | None) -> None:
        self.host = host
        self.lost: Problem | None = None  # to another run
        self._mine = mine.record()
        self._seen = run_lock.ANY if seen is None else seen
        self._held: OpenCommand | None = None
        self._taken = False
        self._beaten = 0.0

    def take(self) -> Problem | None:
        """Take it, unless another run has it, or had it since; the problem then."""
        try:
            answer = self._ask(self._seen)
        except GONE as error:
            answer = Answer("failed", text=str(error) or type(error).__name__)
        if answer is None:  # a host whose connector cannot hold one
            return None
        problem = run_lock.problem(self.host.name, answer)
        self._taken = problem is None
        if problem:
            self.give_back()
        return problem

    def keep(self) -> None:
        """Let its host hear that this run lives; take the lock again where it is lost."""
        if self.lost or not self._taken:
            return
        try:
            if self._held is not None and not self._held.ended():
                if time.monotonic() - self._beaten >= BEAT_S:
                    self._held.send(b".")
                    self._beaten = time.monotonic()
                return
        except GONE:
            pass
        if self.host.connected:  # else it reboots, or is gone
            self._again()

    def give_back(self) -> None:
        """Let another run have it."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _ask(self, expected: str) -> Answer | None:
        settings = {
            "folder": run_lock.FOLDER, "patience_s": run_lock.PATIENCE_S, "mark": run_lock.MARK,
        }  # fmt: skip
        given = "\n".join(f"{key}={shlex.quote(str(value))}" for key, value in settings.items())
        command = open_command.begin(self.host, f"{given}\n{SCRIPT}")
        if command is None:
            return None
        command.send(f"{self._mine}\n{expected}\n".encode())
        self._held, self._beaten = command, time.monotonic()
        said: list[str] = []
        for line in command.lines(_ANSWER_S):
            said.append(line)
            if run_lock.MARK in line:
                break
        return run_lock.answer(said)

    def _again(self) -> None:
        """After its process or connection has ended, as with a reboot, which empties /run."""
        self._held = None
        try:
            answer = self._ask(expected="")
        except GONE:
            answer = None
        if answer is not None and answer.outcome == "taken":
            logger.debug("took the lock of %s again", self.host.name)
            return
        self.give_back()  # and later once more
        # this run's own record: the process that it lost holds it until its time is up
        if answer is not None and answer.record not in (self._mine, ""):
            self.lost = run_lock.problem(self.host.name, answer)


class RunLock(BaseStateCallback):
    """The leases of one run, kept by a greenlet; the run ends when one goes to another run."""

    def __init__(self, leases: Sequence[Lease]) -> None:
        self._leases = leases
        self._over = Event()

    def take(self) -> None:
        """Take all of them, or none. Raises `LockError`."""
        for number, lease in enumerate(self._leases):
            if problem := lease.take():
                for taken in self._leases[:number]:
                    taken.give_back()
                raise LockError(refusal([problem]))
        gevent.spawn(self._keep)

    def give_back(self) -> None:
        """The run has ended."""
        self._over.set()
        for lease in self._leases:
            lease.give_back()

    def lost(self) -> Problem | None:
        """Who has taken one of them, if anybody has."""
        return next((lease.lost for lease in self._leases if lease.lost), None)

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        for lease in self._leases:
            if lease.lost:
                where = f"[{lease.host.name}] {lease.lost.cause}"
                cause = f"this run lost its lock while its connection was away, and stops: {where}"
                raise LockError(f"{cause}\n    remedy: {lease.lost.remedy}")

    def _keep(self) -> None:
        while not self._over.wait(_LOOK_S):
            for lease in self._leases:
                lease.keep()


@contextmanager
def held(state: State, command: str) -> Iterator[RunLock | None]:
    """Hold the lock for the length of the block, where this run has something to change.

    + command: of this run, as other runs are to see it

    Yields the lock, or None without one. Raises `LockError`, before anything is touched, when
    another run has it.
    """
    comparison = compare.current()
    if comparison is not None and not comparison.differs:
        yield None
        return
    user = f"{getpass.getuser()}@{socket.gethostname()}"
    mine = Holder(uuid.uuid4().hex, user, str(Path.cwd()), command)
    lock = RunLock([Lease(host, mine, seen) for host, seen in _homes(state)])
    lock.take()
    state.add_callback_handler(lock)  # type: ignore[no-untyped-call]
    try:
        yield lock
    finally:
        lock.give_back()


def taken(states: Mapping[str, NodeState]) -> list[Problem]:
    """The locks that other runs held when hosts were read. + states: by inventory name"""
    return [
        run_lock.held(name, state.run_lock, state.run_lock_age)
        for name, state in states.items()
        if state.run_lock_age is not None
    ]


def _homes(state: State) -> Iterator[tuple[Host, str | None]]:
    """The hosts whose lock a run takes, and the record that each had when this run read it."""
    run = context.begun()
    names = [node.host for node in run.nodes if node.role == "control_plane" or node.monitor]
    homes = [host for host in map(state.inventory.get_host, names) if reach(host)]
    if not homes:
        logger.warning(
            f"{', '.join(names)} cannot be reached, where other runs would see that this one is at "
            "work; remedy: see that nobody else changes this site now"
        )
    for host in homes:
        found = run.states.get(host.name)
        yield host, None if found is None else found.run_lock
