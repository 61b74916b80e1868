"""A command of minutes says how far it is, and what it said when it failed."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import gevent.subprocess
import pytest

from deploys.engine import commands, long_command, privilege
from deploys.engine.shell import CommandResult


class Output:
    """What pyinfra hands back of a command."""

    def __init__(self, text: str) -> None:
        self.output_lines = text.splitlines()


class Target:
    """A host whose shell is this machine's."""

    name = "cp1"
    print_prefix = "[cp1] "
    executing_op_hash = "op"

    def __init__(self) -> None:
        self.state = SimpleNamespace(is_executing=True)
        self.messages: list[str] = []

    def run_shell_command(self, command: Any, **_: Any) -> tuple[bool, Output]:
        completed = gevent.subprocess.run(
            ["sh", "-c", command.get_raw_value()], capture_output=True, text=True
        )
        return completed.returncode == 0, Output(completed.stdout + completed.stderr)

    def log_styled(self, message: str, **_: Any) -> None:
        self.messages.append(message)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setattr(long_command, "_FOLDER", str(tmp_path))
    monkeypatch.setattr(long_command, "_LOG", str(tmp_path / "command.log"))
    monkeypatch.setattr(long_command, "TELL_S", 0.05)
    monkeypatch.setattr(commands, "messages", {})
    monkeypatch.setattr(privilege, "become_arguments", lambda host: {})
    monkeypatch.setattr(long_command, "run_command", result)
    return Target()


def result(host: Any, command: str, **_: Any) -> CommandResult:
    completed = gevent.subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    return CommandResult(completed.returncode == 0, completed.stdout, completed.stderr)


def run(target: Target, command: str) -> bool:
    function_command = long_command.long_command(command, "kubeadm upgrades cp1", "run again")
    state = SimpleNamespace(print_output=False, print_input=False)
    return bool(function_command.function(state, target, *function_command.args))


def test_its_last_line_is_told_while_it_runs(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="pyinfra")
    logging.getLogger("pyinfra").propagate = True
    assert run(target, "echo '[upgrade/etcd] Upgrading'; sleep 1.5")
    lines = [record.getMessage() for record in caplog.records]
    pattern = re.compile(r"\[cp1\] kubeadm upgrades cp1: \d s; \[upgrade/etcd\]")
    assert any(pattern.match(line) for line in lines)
    before = len(caplog.records)
    gevent.sleep(0.2)
    assert len(caplog.records) == before  # nobody tells of a command that has ended


def test_a_failure_shows_what_it_said_and_what_to_do(target: Target) -> None:
    assert not run(target, "echo one; echo two >&2; exit 3")
    assert target.messages == ["kubeadm upgrades cp1: failed:\none\ntwo\n    remedy: run again"]
