"""What the compose operation does on a host, for each thing that may differ there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand, StringCommand

from deploys.engine import changes
from deploys.engine.commands import fail
from deploys.parts.compose import operations as compose
from deploys.parts.compose.fact import Compose, ComposeState
from gpuboot.docker.compose.compose_files import COMPOSE, File, Project

Command = FunctionCommand | StringCommand
Commands = Callable[..., list[Command]]

PROJECT = Project(
    "/opt/gpuboot",
    ("prometheus", "dcgm-exporter"),
    (
        File(COMPOSE, "name: gpuboot\n"),
        File("prometheus/prometheus.yml", "global: {}\n", service="prometheus"),
        File("prometheus/targets/a/gpuboot.json", "[]\n"),
        File("secrets/alertmanager/key", "hush", "600", 65534, service="prometheus"),
        File("secrets/grafana/admin-password", None, "600", 472),
    ),
    {"data/prometheus": 65534},
    {"prometheus": "SIGHUP", "dcgm-exporter": "restart"},
)
RIGHT = ComposeState(
    absent=False,
    files={
        file.path: (file.mode, file.owner, "made-there" if file.text is None else file.sha256)
        for file in PROJECT.files
    },
    folders={"data/prometheus": ("700", 65534)},
    written_files=tuple(sorted(file.path for file in PROJECT.files)),
    applied={"prometheus": PROJECT.digest("prometheus")},
    hashes={"prometheus": "h1", "dcgm-exporter": "h2"},
    containers={"prometheus": [("running", "h1")], "dcgm-exporter": [("running", "h2")]},
)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    """What the operation would run on a host in a state; None when it has nothing to do."""

    def run(state: ComposeState, project: Project = PROJECT) -> list[Command]:
        messages: list[str] = []
        fake = SimpleNamespace(
            name="gpu1",
            state=SimpleNamespace(is_executing=True),
            current_op_hash="up",
            noop=messages.append,
        )
        monkeypatch.setattr(compose, "host", fake)
        monkeypatch.setattr(compose, "read", lambda fact, **_: state if fact is Compose else {})
        monkeypatch.setattr(changes, "host", fake)
        executed = list(compose.up._inner(project))
        assert bool(executed) != bool(messages)
        return executed

    return run


def texts(executed: list[Command]) -> list[str]:
    return [
        command.args[0] if isinstance(command, FunctionCommand) else command.get_raw_value()
        for command in executed
    ]


def test_nothing_is_done_where_all_is_right(commands: Commands) -> None:
    assert commands(RIGHT) == []


def test_a_bare_host_gets_everything_and_no_secret_on_a_command_line(commands: Commands) -> None:
    executed = commands(ComposeState(absent=False))
    lines = texts(executed)
    assert lines[0] == "install -d -m 700 -o 65534 -g 65534 /opt/gpuboot/data/prometheus"
    assert "hush" not in " ".join(lines)
    assert "hush" in [command.connector_arguments.get("_stdin") for command in executed]
    assert any("head -c 4 > /opt/gpuboot/secrets/alertmanager/key" in text for text in lines)
    up = next(text for text in lines if "docker compose up -d" in text)
    assert "--remove-orphans" in up
    pull = next(text for text in lines if "docker compose pull" in text)
    assert lines.index(pull) < lines.index(up)
    assert "DOCKER_CONFIG=/etc/gpuboot/docker" in pull
    assert lines[-1].startswith("mkdir -p /opt/gpuboot && printf %s 'prometheus ")


def test_a_password_is_made_on_the_host_once(commands: Commands) -> None:
    (make,) = [t for t in texts(commands(ComposeState(absent=False))) if "urandom" in t]
    assert "cat /opt/gpuboot/secrets/grafana/admin-password 2>/dev/null ||" in make
    assert "umask 077" in make


@pytest.mark.parametrize(
    ("path", "signalled"),
    [
        ("prometheus/prometheus.yml", "docker compose kill -s SIGHUP prometheus"),
        ("prometheus/targets/a/gpuboot.json", ""),
    ],
)
def test_a_changed_file_is_told_only_to_whom_it_concerns(
    commands: Commands, path: str, signalled: str
) -> None:
    files = {**RIGHT.files, path: ("644", 0, "old")}
    applied = {"prometheus": "old"} if signalled else RIGHT.applied
    lines = texts(commands(replace(RIGHT, files=files, applied=applied)))
    folder = f"/opt/gpuboot/{Path(path).parent}"
    assert lines[0].startswith(f"mkdir -p {folder} && (umask 077 && head -c ")
    if not signalled:
        assert len(lines) == 1
    else:
        assert signalled in lines[1]
        # a container that was created again has read them already, and may die of an early signal
        assert '"$was_prometheus" != "$(docker compose ps -q prometheus)"' in lines[1]
        assert "dcgm-exporter" not in lines[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"containers": {**RIGHT.containers, "prometheus": [("exited", "h1")]}},
        {"containers": {"prometheus": [("running", "h1")]}},
        {"containers": {**RIGHT.containers, "grafana": [("running", "h9")]}},
        {"hashes": {**RIGHT.hashes, "dcgm-exporter": "new"}},
        {"files": {**RIGHT.files, COMPOSE: ("644", 0, "old")}},
        {"applied": {}},
    ],
)
def test_containers_come_up_whenever_they_are_not_as_wanted(
    commands: Commands, changes: dict[str, Any]
) -> None:
    assert any(
        "docker compose up -d" in text for text in texts(commands(replace(RIGHT, **changes)))
    )


def test_what_is_no_longer_wanted_goes_and_other_peoples_files_stay(commands: Commands) -> None:
    written_files = (*RIGHT.written_files, "prometheus/targets/gone/gpuboot.json")
    lines = texts(commands(replace(RIGHT, written_files=written_files)))
    assert lines[0] == "rm -f /opt/gpuboot/prometheus/targets/gone/gpuboot.json"
    assert len(lines) == 2


def test_a_wrong_owner_of_a_secret_is_corrected(commands: Commands) -> None:
    files = {**RIGHT.files, "secrets/alertmanager/key": ("644", 0, PROJECT.files[3].sha256)}
    (line,) = texts(commands(replace(RIGHT, files=files)))
    assert "chmod 600" in line
    assert "chown 65534:65534" in line


def test_without_dockerd_it_fails_with_a_remedy(commands: Commands) -> None:
    (failing,) = commands(ComposeState())
    assert isinstance(failing, FunctionCommand)
    assert failing.function is fail("").function
    assert failing.args == ["no dockerd answers\n    remedy: run deploys/standalone.py"]


def run_fact(folder: Path, path: str) -> ComposeState:
    script = Compose.command(Compose(), str(folder), ["a.yml", "gone.yml"], ["data"])
    result = subprocess.run(
        ["sh", "-c", script], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    return Compose().process(result.stdout.splitlines())


def test_the_fact_reads_files_folders_and_what_earlier_runs_wrote(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("a\n")
    (tmp_path / "a.yml").chmod(0o640)
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / ".written").write_text("a.yml\nold name.yml\n")
    (tmp_path / ".applied").write_text("prometheus 0123\n")
    state = run_fact(tmp_path, "/usr/bin:/bin")
    assert state.files == {"a.yml": ("640", state.files["a.yml"][1], File("a", "a\n").sha256)}
    assert state.folders["data"][0] == "700"
    assert state.written_files == ("a.yml", "old name.yml")
    assert state.applied == {"prometheus": "0123"}


def test_the_fact_reads_containers_from_docker(tmp_path: Path) -> None:
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(
        "#!/bin/sh\ncase $1 in compose) echo 'web 00ff' ;; "
        "ps) echo 'web running 00ff'; echo 'db exited 11'; echo 'db running 12' ;; esac\n"
    )
    docker.chmod(0o755)
    (tmp_path / "compose.yaml").write_text("name: gpuboot\n")
    state = run_fact(tmp_path, f"{docker.parent}:/usr/bin:/bin")
    assert not state.absent
    assert state.hashes == {"web": "00ff"}
    assert state.containers == {
        "web": [("running", "00ff")],
        "db": [("exited", "11"), ("running", "12")],
    }
    shutil.rmtree(docker.parent)
