"""A Helm command whose hook cannot end: it is ended, and its reason is the run's."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent import subprocess
from pyinfra.api.command import StringCommand

from deploys.engine import commands, privilege, remote
from deploys.parts.helm import helm_hooks
from deploys.parts.helm.helm_hooks import watched
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import Stuck

REASON = Stuck("gpu-operator/upgrade-crd-x", "ErrImagePull in crds: not found", 0.0, "pull it")


class Shell:
    """A host whose commands run here, without holding up what else goes on."""

    name, print_prefix, executing_op_hash = "cp1", "", "op"

    def __init__(self) -> None:
        self.messages: list[str] = []

    def run_shell_command(self, command: StringCommand, **_: Any) -> tuple[bool, Any]:
        result = subprocess.run(command.get_raw_value(), shell=True, capture_output=True, text=True)
        lines = (result.stdout + result.stderr).splitlines()
        return result.returncode == 0, SimpleNamespace(output_lines=lines)

    def log_styled(self, message: str, **_: Any) -> None:
        self.messages.append(message)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    shell = Shell()

    def run(target: Shell, command: str, stdin: str = "") -> str:
        ok, output = target.run_shell_command(StringCommand(command))
        if not ok:
            raise remote.RemoteError(str(output))
        return "\n".join(output.output_lines)

    monkeypatch.setattr(helm_hooks, "_PID", str(tmp_path / "run/helm.pid"))
    monkeypatch.setattr(helm_hooks, "_LOOK_S", 0.05)
    monkeypatch.setattr(privilege, "become_arguments", lambda host: {})
    monkeypatch.setattr(remote, "run", run)
    monkeypatch.setattr(commands, "messages", {})
    return shell


def execute(host: Shell, command: str) -> bool:
    function = watched(StringCommand(command), "Helm release gpu-operator", "gpu-operator")
    state = SimpleNamespace(print_output=False, print_input=False)
    with gevent.Timeout(20):
        return bool(function.function(state, host, *function.args))


def looks(monkeypatch: pytest.MonkeyPatch, *reasons: Stuck) -> None:
    look = Progress(False, "waits", stuck=reasons)
    monkeypatch.setattr(helm_hooks, "_look", lambda host, namespace, since: look)


def test_helm_is_ended_when_a_hook_cannot_end(host: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch, REASON)
    started_at = time.monotonic()
    assert not execute(host, "sleep 15 >/dev/null")
    assert time.monotonic() - started_at < 10
    assert host.messages == [
        "Helm release gpu-operator: gpu-operator/upgrade-crd-x: ErrImagePull in crds: not found\n"
        "    remedy: pull it; then run again"
    ]


def test_a_look_that_fails_ends_nothing(host: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(host: Shell, namespace: str, since: float) -> Progress:
        raise remote.RemoteError("the API server does not answer")

    monkeypatch.setattr(helm_hooks, "_look", refuse)
    assert execute(host, "sleep 0.3")
    assert host.messages == []


def test_what_helm_says_is_quoted(host: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch)
    assert not execute(host, "{ echo 'Error: no such chart' >&2; false; }")
    assert "Helm failed: Error: no such chart" in host.messages[0]
