"""The lock by which one run at a time changes a site, held on its leading hosts during a run.

It is taken when all is compared and something is to be changed, so a run that changes nothing, a
dry one and a verification neither wait for it nor pay for it. It lies on every control-plane node
that answers, since another one may lead the next run; for Docker hosts on the one that runs
Prometheus. A process there holds it (lock.sh), fed by a byte now and then: the kernel gives it back
when a run is killed, its host reboots or its connection ends. A run that needs its host rebooted
takes it again.
"""

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

from deploys.engine import compare, open_command
from deploys.engine.connections import reach
from deploys.engine.open_command import CONNECTION_ERRORS, OpenCommand
from deploys.engine.start_problems import refusal
from deploys.run import context
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

    + expected: the record that this run read there before it decided what to do; None: it read none
    """

    def __init__(self, host: Host, holder: Holder, expected: str | None) -> None:
        self.host = host
        self.lost_to: Problem | None = None  # to another run
        self._own_record = holder.record()
        self._expected_record = run_lock.ANY if expected is None else expected
        self._command: OpenCommand | None = None
        self._is_held = False
        self._beaten = 0.0

    def acquire(self) -> Problem | None:
        """Take the lock, unless another run has it, or had it since; the problem then."""
        try:
            answer = self._request_lock(self._expected_record)
        except CONNECTION_ERRORS as error:
            answer = Answer("failed", text=str(error) or type(error).__name__)
        if answer is None:  # a host whose connector cannot hold one
            return None
        problem = run_lock.problem(self.host.name, answer)
        self._is_held = problem is None
        if problem:
            self.give_back()
        return problem

    def renew(self) -> None:
        """Show its host that this run lives; take the lock again where it is lost."""
        if self.lost_to or not self._is_held:
            return
        try:
            if self._command is not None and not self._command.has_ended():
                if time.monotonic() - self._beaten >= BEAT_S:
                    self._command.send(b".")
                    self._beaten = time.monotonic()
                return
        except CONNECTION_ERRORS:
            pass
        if self.host.connected:  # else it reboots, or is gone
            self._retake()

    def give_back(self) -> None:
        """Release the lock."""
        command, self._command = self._command, None
        if command is not None:
            command.close()

    def _request_lock(self, expected: str) -> Answer | None:
        settings = {
            "folder": run_lock.FOLDER, "patience_s": run_lock.PATIENCE_S, "mark": run_lock.MARK,
        }  # fmt: skip
        variables = "\n".join(f"{key}={shlex.quote(str(value))}" for key, value in settings.items())
        command = open_command.begin(self.host, f"{variables}\n{SCRIPT}")
        if command is None:
            return None
        command.send(f"{self._own_record}\n{expected}\n".encode())
        self._command, self._beaten = command, time.monotonic()
        lines: list[str] = []
        for line in command.lines(_ANSWER_S):
            lines.append(line)
            if run_lock.MARK in line:
                break
        return run_lock.answer(lines)

    def _retake(self) -> None:
        """Take the lock again after its process or connection has ended, as with a reboot."""
        self._command = None
        try:
            answer = self._request_lock(expected="")
        except CONNECTION_ERRORS:
            answer = None
        if answer is not None and answer.outcome == "taken":
            logger.debug("took the lock of %s again", self.host.name)
            return
        self.give_back()  # and later once more
        # this run's own record: the process that it lost holds it until its time is up
        if answer is not None and answer.record not in (self._own_record, ""):
            self.lost_to = run_lock.problem(self.host.name, answer)


class RunLock(BaseStateCallback):
    """The leases of one run, kept by a greenlet; the run ends when one goes to another run."""

    def __init__(self, leases: Sequence[Lease]) -> None:
        self._leases = leases
        self._over = Event()

    def acquire(self) -> None:
        """Take all leases, or none. Raises `LockError`."""
        for number, lease in enumerate(self._leases):
            if problem := lease.acquire():
                for earlier_lease in self._leases[:number]:
                    earlier_lease.give_back()
                raise LockError(refusal([problem]))
        gevent.spawn(self._renew_leases)

    def give_back(self) -> None:
        """Release all leases: the run has ended."""
        self._over.set()
        for lease in self._leases:
            lease.give_back()

    def is_lost(self) -> Problem | None:
        """The problem that another run has taken one of the leases; None while it has not."""
        return next((lease.lost_to for lease in self._leases if lease.lost_to), None)

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        for lease in self._leases:
            if lease.lost_to:
                location = f"[{lease.host.name}] {lease.lost_to.cause}"
                cause = (
                    f"this run lost its lock while its connection was away, and stops: {location}"
                )
                raise LockError(f"{cause}\n    remedy: {lease.lost_to.remedy}")

    def _renew_leases(self) -> None:
        while not self._over.wait(_LOOK_S):
            for lease in self._leases:
                lease.renew()


@contextmanager
def hold(state: State, command: str) -> Iterator[RunLock | None]:
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
    holder = Holder(uuid.uuid4().hex, user, str(Path.cwd()), command)
    lock = RunLock([Lease(host, holder, expected) for host, expected in _homes(state)])
    lock.acquire()
    state.add_callback_handler(lock)  # type: ignore[no-untyped-call]
    try:
        yield lock
    finally:
        lock.give_back()


def foreign_locks(states: Mapping[str, NodeState]) -> list[Problem]:
    """The locks that other runs held when hosts were read. + states: by inventory name"""
    return [
        run_lock.conflict_problem(name, state.run_lock, state.run_lock_age)
        for name, state in states.items()
        if state.run_lock_age is not None
    ]


def _homes(state: State) -> Iterator[tuple[Host, str | None]]:
    """The hosts whose lock a run takes, and the record that each had when this run read it."""
    run = context.current_run()
    names = [node.host for node in run.nodes if node.role == "control_plane" or node.monitor]
    homes = [host for host in map(state.inventory.get_host, names) if reach(host)]
    if not homes:
        logger.warning(
            f"{', '.join(names)} cannot be reached, where other runs would see that this one is at "
            "work; remedy: see that nobody else changes this site now"
        )
    for host in homes:
        node_state = run.states.get(host.name)
        yield host, None if node_state is None else node_state.run_lock
