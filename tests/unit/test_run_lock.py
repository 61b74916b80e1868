"""The lock of runs: the real script and flock, through a process here and through SSH."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import paramiko
import pytest
from paramiko import common
from pyinfra.api.host import Host

from deploys.engine import open_command
from deploys.run import lock
from deploys.run.lock import Lease, LockError, RunLock
from gpuboot.hosts import node_state, run_lock
from gpuboot.hosts.run_lock import MARK, Holder, answer
from tests.unit.test_node_state import ANSWER

ALICE = Holder("1", "alice@laptop", "/home/alice/site", "pyinfra prod.py deploys/site.py -y")
BOB = Holder("2", "bob@desk", "/srv/site", "pyinfra prod.py deploys/reset.py -y")
NODE = Path(lock.__file__).parents[1] / "parts/node/fact.sh"


class FakeHost:
    """A host by its name alone."""

    name = "cp1"
    connected = True


HOST = cast(Host, FakeHost())


@pytest.fixture(autouse=True)
def _end_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process outlives its test."""
    started: list[open_command._Local] = []
    make = open_command._Local

    def counted(command: str) -> open_command._Local:
        started.append(make(command))
        return started[-1]

    monkeypatch.setattr(open_command, "_Local", counted)
    yield
    for command in started:
        command.close()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _end_processes: None) -> Path:
    """The lock's folder; commands run on this machine."""
    monkeypatch.setattr(run_lock, "FOLDER", str(tmp_path))
    begin: Callable[..., Any] = lambda host, command: open_command._Local(command)  # noqa: E731
    monkeypatch.setattr(open_command, "begin", begin)
    return tmp_path


def within(seconds: float, look: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not (result := look()) and time.monotonic() < until:
        time.sleep(0.02)
    return result


def leased(holder: Holder, observed: str | None = "") -> Lease:
    lease = Lease(HOST, holder, observed)
    assert lease.acquire() is None
    return lease


def test_the_second_run_hears_who_is_at_work() -> None:
    first = leased(ALICE)
    problem = Lease(HOST, BOB, "").acquire()
    assert problem is not None
    assert problem.host == "cp1"
    assert re.fullmatch(
        r"another run changes this site: alice@laptop, for \d+ s, in /home/alice/site: "
        r"pyinfra prod\.py deploys/site\.py -y",
        problem.cause,
    )
    first.give_back()
    assert leased(BOB, ALICE.record()).lost_to is None


def test_a_run_that_read_the_hosts_before_another_one_changed_them_stops(folder: Path) -> None:
    leased(ALICE).give_back()
    problem = Lease(HOST, BOB, "").acquire()
    assert problem is not None
    assert problem.cause.startswith("alice@laptop has changed this site since this run read it")
    # it holds nothing, and its attempt is no change
    assert leased(BOB, ALICE.record())
    assert (folder / "run.lock").read_text().strip() == BOB.record()
    assert (folder / "run.lock").stat().st_mode & 0o777 == 0o600


def test_a_host_that_booted_meanwhile_is_read_again(folder: Path) -> None:
    problem = Lease(HOST, BOB, ALICE.record()).acquire()
    assert problem is not None
    assert problem.cause == "this host has booted since this run read it"
    # who reads nothing beforehand has nothing to read again
    assert leased(BOB, None)


def test_what_keeps_it_from_being_taken_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(run_lock, "FOLDER", str(tmp_path / "file"))
    problem = Lease(HOST, ALICE, "").acquire()
    assert problem is not None
    assert "cannot be taken: mkdir" in problem.cause


def test_none_or_all_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = iter(["b", "a", "b", "a"])
    begin: Callable[..., Any] = lambda host, command: open_command._Local(  # noqa: E731
        command.replace(shlex.quote(str(tmp_path)), shlex.quote(f"{tmp_path}/{next(folders)}"), 1)
    )
    monkeypatch.setattr(open_command, "begin", begin)
    first, second = Lease(HOST, BOB, None), Lease(HOST, BOB, None)
    second_lease = Lease(HOST, ALICE, None)
    assert Lease(HOST, ALICE, None).acquire() is None
    run = RunLock([first, second])
    with pytest.raises(LockError, match="another run changes this site"):
        run.acquire()
    assert second_lease.acquire() is None


def test_a_holder_that_is_not_heard_of_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "PATIENCE_S", 2)
    silent = leased(ALICE)
    heard = time.monotonic()
    monkeypatch.setattr(lock, "BEAT_S", 0.0)
    while time.monotonic() - heard < 3:  # longer than a host waits
        silent.renew()
        time.sleep(0.1)
    assert Lease(HOST, BOB, None).acquire() is not None
    assert within(6, lambda: Lease(HOST, BOB, None).acquire() is None)


def test_it_is_taken_again_after_its_process_ended(folder: Path) -> None:
    lease = leased(ALICE)
    process = cast(Any, lease._command)._process
    os.killpg(process.pid, 9)
    assert within(3, lambda: bool(process.poll() is not None))
    lease.renew()
    assert Lease(HOST, BOB, None).acquire() is not None
    assert lease.lost_to is None
    (folder / "run.lock").unlink()  # as a reboot does
    os.killpg(cast(Any, lease._command)._process.pid, 9)
    assert within(3, lambda: bool(cast(Any, lease._command).has_ended()))
    lease.renew()
    assert (folder / "run.lock").read_text().strip() == ALICE.record()


def test_a_run_whose_lock_went_to_another_one_stops() -> None:
    lease = leased(ALICE)
    os.killpg(cast(Any, lease._command)._process.pid, 9)
    assert within(3, lambda: Lease(HOST, BOB, None).acquire() is None)
    lease.renew()
    run = RunLock([lease])
    with pytest.raises(LockError, match=r"(?s)lost its lock.*bob@desk.*remedy"):
        run.operation_start(cast(Any, None), "")


def test_an_answer_is_found_in_what_a_shell_prints() -> None:
    reply = answer(["Welcome to cp1!", f"last login {MARK}held\t130\t{ALICE.record()}"])
    assert (reply.outcome, reply.age_s, Holder.of(reply.record)) == ("held", 130, ALICE)
    assert run_lock.conflict_problem("cp1", reply.record, reply.age_s).cause.count("for 2 min")
    assert run_lock.conflict_problem("cp1", reply.record, 7300).cause.count("for 2 h")
    assert answer(["sudo: no"]).text == "sudo: no"
    assert answer([]).outcome == "failed"
    assert Holder.of("{").user == "somebody"


def lock_lines(folder: Path) -> list[str]:
    """What the fact about a machine says of the lock: its own lines, run alone."""
    part = NODE.read_text().split("# --- the lock of runs")[1].split("# last, so that")[0]
    script = (
        'put() { printf "%s\\t%s\\n" "$1" "$2"; }; first() { head -n 1 "$1"; }\n'
        + part.partition("\n")[2].replace("/run/gpuboot", str(folder))
    )
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout.splitlines()


def test_the_fact_about_a_machine_tells_whether_it_is_held(folder: Path) -> None:
    state = node_state.parse([*lock_lines(folder), *ANSWER])
    assert (state.run_lock, state.run_lock_age) == ("", None)
    lease = leased(ALICE)
    state = node_state.parse([*lock_lines(folder), *ANSWER])
    assert state.run_lock == ALICE.record()
    assert state.run_lock_age in (0, 1)
    assert [item.cause[:40] for item in lock.foreign_locks({"cp1": state})] == [
        "another run changes this site: alice@lap"
    ]
    lease.give_back()
    assert lock.foreign_locks({"cp1": node_state.parse([*lock_lines(folder), *ANSWER])}) == []


class Server(paramiko.ServerInterface):
    """Lets anyone in, and runs what it is told to."""

    def check_auth_password(self, username: str, password: str) -> int:
        return common.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=self._run, args=(channel, command), daemon=True).start()
        return True

    def _run(self, channel: paramiko.Channel, command: bytes) -> None:
        pipe = subprocess.PIPE
        process = subprocess.Popen(["sh", "-c", command], stdin=pipe, stdout=pipe)
        threading.Thread(target=self._feed, args=(channel, process), daemon=True).start()
        assert process.stdout is not None
        with suppress(OSError, EOFError):
            for line in process.stdout:
                channel.sendall(line)
            channel.send_exit_status(process.wait())
            channel.close()

    def _feed(self, channel: paramiko.Channel, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with suppress(OSError, EOFError):
            while data := channel.recv(1024):
                process.stdin.write(data)
                process.stdin.flush()
        process.stdin.close()


@pytest.fixture
def connection() -> Iterator[paramiko.Transport]:
    near, far = socket.socketpair()
    server = paramiko.Transport(far)
    server.add_server_key(paramiko.ECDSAKey.generate())
    server.start_server(event=threading.Event(), server=Server())
    client = paramiko.Transport(near)
    client.connect(username="root", password="x")
    yield client
    client.close()
    server.close()


@pytest.fixture
def by_ssh(connection: paramiko.Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    begin: Callable[..., Any] = lambda host, command: open_command._Ssh(connection, command)  # noqa: E731
    monkeypatch.setattr(open_command, "begin", begin)


@pytest.mark.usefixtures("by_ssh")
def test_through_ssh_it_is_held_until_it_is_given_back() -> None:
    first = leased(ALICE)
    first.renew()
    assert Lease(HOST, BOB, None).acquire() is not None
    first.give_back()
    assert leased(BOB, None)


@pytest.mark.usefixtures("by_ssh")
def test_a_run_whose_connection_ends_leaves_the_lock_at_once(
    connection: paramiko.Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = leased(ALICE)
    connection.close()
    begin: Callable[..., Any] = lambda host, command: open_command._Local(command)  # noqa: E731
    monkeypatch.setattr(open_command, "begin", begin)
    assert within(3, lambda: Lease(HOST, BOB, None).acquire() is None)
    assert cast(Any, lease._command).has_ended()
