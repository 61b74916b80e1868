"""`gpuboot init` and `gpuboot check` with pyinfra itself, on hosts by SSH and on fakes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboot.hosts.reading import FINDINGS, Reading, from_json
from gpuboot.site.site_check import parse_assignments
from tests.inputs.command_line import ROOT, Completed, project, pyinfra
from tests.inputs.shell_server import shell_server

CHECK = str(ROOT / "deploys" / "check.py")
READ = str(ROOT / "deploys" / "read_hosts.py")


@pytest.fixture
def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pyinfra leaves what it learned."""
    path = tmp_path / "findings"
    monkeypatch.setenv(FINDINGS, str(path))
    return path


def plan_inventory(tmp_path: Path, name: str) -> Path:
    folder = project(tmp_path, {})
    shutil.copytree(ROOT / "tests" / "plan" / "inventories", folder / "plan")
    return folder / "plan" / f"{name}.py"


def reading_of(result: Completed, findings: Path) -> Reading:
    assert findings.exists(), result.output
    return from_json(findings.read_text())


@pytest.mark.parametrize("name", ["site", "docker"])
def test_a_check_of_hosts_without_a_problem(name: str, tmp_path: Path, findings: Path) -> None:
    result = pyinfra(tmp_path, [str(plan_inventory(tmp_path, name)), CHECK, "-y"])
    assert result.code == 0, result.output
    assert reading_of(result, findings).problems == ()


def test_a_check_says_what_a_run_says(
    tmp_path: Path, findings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAN_BREAKAGE", '{"gpu1": ["cgroup 1"], "cpu1": ["uid 1000"]}')
    inventory = str(plan_inventory(tmp_path, "site"))
    result = pyinfra(tmp_path, [inventory, CHECK, "-y"])
    run = pyinfra(tmp_path, [inventory, str(ROOT / "deploys" / "site.py"), "--dry"])
    problems = reading_of(result, findings).problems
    assert [item.host for item in problems] == ["@fake/cpu1", "@fake/gpu1"]
    text = "\n".join(["2 problems; nothing was changed", *map(str, problems)])
    assert (result.code, run.code) == (1, 1)
    assert text in result.output
    assert text in run.output


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        ("", "has no hosts"),
        ("workers = ['@fake/gpu1']", "there is no control-plane node"),
        ("control_plane = [('127.0.0.1', {'ssh_port': 1})]", "cannot be reached"),
    ],
)
def test_what_ends_a_check_early_is_left_as_well(
    inventory: str, expected: str, tmp_path: Path, findings: Path
) -> None:
    folder = project(tmp_path, {"inventories/mine.py": inventory})
    result = pyinfra(folder, ["inventories/mine.py", CHECK, "-y"])
    assert result.code == 1
    (problem,) = reading_of(result, findings).problems
    assert expected in problem.cause
    assert str(problem) in result.output


def test_hosts_are_read_whatever_they_will_be(tmp_path: Path, findings: Path) -> None:
    result = pyinfra(tmp_path, [str(plan_inventory(tmp_path, "site")), READ, "-y"])
    assert result.code == 0, result.output
    reading = reading_of(result, findings)
    assert {name: len(host.state.gpus) for name, host in reading.hosts.items()} == {
        "@fake/cp1": 0, "@fake/gpu1": 8, "@fake/cpu1": 0,
    }  # fmt: skip
    assert reading.problems == ()


def test_reading_needs_no_settings(tmp_path: Path, findings: Path) -> None:
    """Those of another site, or of one that is gone, are none of its business."""
    files = {
        "inventories/mine.py": "hosts = [('127.0.0.1', {'ssh_port': 1, 'ssh_connect_retries': 0})]",
        "group_data/gone.py": "gpuboot = {'cluster': {'name': 'gone'}}",
    }
    result = pyinfra(project(tmp_path, files), ["inventories/mine.py", READ, "-y"])
    reading = reading_of(result, findings)
    assert list(reading.unreachable) == ["127.0.0.1"]
    assert reading.unreachable["127.0.0.1"].startswith("Could not connect")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    folder = tmp_path_factory.mktemp("server")
    with shell_server(folder) as port:
        yield folder, port


def gpuboot(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command(folder, "gpuboot", *arguments)


def command(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of ours in a folder with the project's files, and a home of its own."""
    if not (folder / "deploys").exists():
        project(folder, {})
        (folder / "deploys").symlink_to(ROOT / "deploys")
        (folder / ".ssh").mkdir()
        (folder / ".ssh" / "known_hosts").touch()
    environment = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
    return subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments],
        cwd=folder,
        env={**environment, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_from_ssh_to_an_inventory_that_pyinfra_takes(
    server: tuple[Path, int], tmp_path: Path
) -> None:
    """The machine that the tests run on is the host: what is written is what it is."""
    keys, port = server
    host = f"root@127.0.0.1:{port}"
    result = gpuboot(tmp_path, "init", "--name", "mine", "--key", str(keys / "key"), host)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"host keys that were new are in known_hosts now: [127.0.0.1]:{port}" in result.stdout
    text = (tmp_path / "inventories" / "mine.py").read_text()
    ((name, data),) = parse_assignments("mine.py", text)["control_plane"]
    assert (name, data["node_name"]) == ("127.0.0.1", os.uname().nodename.partition(".")[0].lower())
    settings = parse_assignments("mine.py", (tmp_path / "group_data" / "mine.py").read_text())
    assert settings["ssh_port"] == port
    assert settings["_sudo"] is False
    # known_hosts has its key by now, and the files say the rest
    arguments = ("inventories/mine.py", "deploys/read_hosts.py", "-y")
    connected = command(tmp_path, "pyinfra", *arguments)
    assert "[127.0.0.1] Connected" in connected.stderr, connected.stderr
    assert connected.returncode == 0


def test_every_host_that_does_not_let_us_in_is_told_of(
    server: tuple[Path, int], tmp_path: Path
) -> None:
    keys, port = server
    hosts = [f"root@127.0.0.1:{port}", "127.0.0.1:1", "no.such.invalid"]
    key = ["--key", str(keys / "wrong-key")]
    result = gpuboot(tmp_path, "init", "--name", "mine", "--user", "me", *key, *hosts)
    assert result.returncode == 1
    assert "3 problems; nothing was written" in result.stderr
    assert f"[root@127.0.0.1:{port}] cannot be reached: Authentication error" in result.stderr
    assert "[me@127.0.0.1:1] cannot be reached: Could not connect" in result.stderr
    assert "[me@no.such.invalid] cannot be reached: Could not resolve" in result.stderr
    assert not (tmp_path / "inventories" / "mine.py").exists()


def test_a_key_that_is_none_is_told_of(tmp_path: Path) -> None:
    result = gpuboot(tmp_path, "init", "--name", "mine", "--key", "~/none", "gpu1")
    assert result.returncode == 1
    assert "No such private key file: ~/none" in result.stderr
    assert "nothing was written" in result.stderr
