"""run.json, written by a real pyinfra run on this machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import run_pyinfra

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = """
import os
from pyinfra.context import state
from pyinfra.api.deploy import deploy
from pyinfra.operations import files, server
from deploys.run.report import watch
from gpuboot.config.settings import parse_settings

watch(state, parse_settings({"cluster": {"name": "t"}}))

@deploy("Base")
def base():
    server.shell(name="Change something", commands=["true"])
    files.directory(name="There already", path="/tmp")

@deploy("Drivers")
def drivers():
    server.shell(name="Do what LAST says", commands=["LAST".replace("PID", str(os.getpid()))])
    server.shell(name="Come after it", commands=["true"])

base()
drivers()
"""

# a reboot: the machine refuses connections, and then takes one, unless it is not to come back
REBOOT = """
from pyinfra.api.exceptions import ConnectError
from pyinfra.context import host, state
from pyinfra.operations import python
from deploys.run.report import watch
from gpuboot.config.settings import parse_settings

watch(state, parse_settings({"cluster": {"name": "t"}}))

def refuse():
    raise ConnectError("connection refused")

def reboot():
    host.disconnect()
    connect, host.connector.connect = host.connector.connect, refuse
    host.connect(show_errors=False)
    host.connector.connect = connect
    if LAST:
        host.connect()

python.call(name="Reboot", function=reboot)
"""


LOCAL = "hosts = ['@local']\n"
# two servers that do not exist; on one of them the driver's command fails
TWO = """
_refused = {"stdout": [], "stderr": ["gpuboot: no such driver", "    remedy: name another"],
            "success": False}
hosts = [
    ("@fake/gpu1", {"fake_delay": 0, "fake_delay_jitter": 0}),
    ("@fake/gpu2", {"fake_delay": 0, "fake_delay_jitter": 0,
                    "fake_responses": {"install-driver": _refused}}),
]
"""


def pyinfra(
    folder: Path, last: str, *arguments: str, inventory: str = LOCAL, deploy: str = DEPLOY
) -> subprocess.CompletedProcess[str]:
    (folder / "site.py").write_text(deploy.replace("LAST", last))
    (folder / "inventory.py").write_text(inventory)
    return run_pyinfra(["inventory.py", "site.py", *arguments], folder)


def notes(folder: Path) -> dict[str, Any] | None:
    path = folder / "reports/latest/run.json"
    return json.loads(path.read_text()) if path.exists() else None


def run(folder: Path, last: str, *arguments: str) -> tuple[int, dict[str, Any] | None]:
    return pyinfra(folder, last, *arguments).returncode, notes(folder)


def test_a_run_that_ends_well(tmp_path: Path) -> None:
    code, record = run(tmp_path, "true", "-y")
    assert record is not None
    assert (code, record["exit"]) == (0, 0)
    assert [(phase["name"], phase["operations"]) for phase in record["phases"]] == [
        ("Base", 2),
        ("Drivers", 2),
    ]
    host = record["hosts"]["@local"]
    assert host.pop("seconds") > 0
    assert host == {
        "commands": 4,
        "files": 0,
        "changed": [
            "Base | Change something",
            "Drivers | Do what true says",
            "Drivers | Come after it",
        ],
        "failed": [],
        "errors": [],
        "retries": 0,
        "not_tried": [],
    }
    assert record["versions"]["kubernetes"]["version"]
    assert 0 < sum(phase["seconds"] for phase in record["phases"]) <= record["seconds"]
    assert record["schema"] == 2


@pytest.mark.parametrize(
    ("comes_back", "errors"),
    [("True", []), ("False", [{"operation": "Connect", "message": "connection refused"}])],
)
def test_a_host_that_was_away_is_no_failure_once_it_is_back(
    tmp_path: Path, comes_back: str, errors: list[dict[str, str]]
) -> None:
    result = pyinfra(tmp_path, comes_back, "-y", deploy=REBOOT)
    record = notes(tmp_path)
    assert record is not None
    assert record["hosts"]["@local"]["errors"] == errors
    assert record["exit"] == (1 if errors else 0), result.stderr
    assert ("failed on" in result.stderr) == bool(errors)


def test_times_and_commands_of_each_operation_and_host(tmp_path: Path) -> None:
    """Times are seconds since the process began; they never run backwards, and commands add up."""
    _, record = run(tmp_path, "true", "-y")
    assert record is not None
    moments = [0.0]
    for item in record["operations"]:
        on_host = item["hosts"]["@local"]
        moments += [item["begun"], on_host["begun"], on_host["ended"], item["ended"]]
        assert item["commands"] == {"@local": 1}
    assert moments == sorted(moments)
    assert moments[-1] <= record["seconds"]
    stages = {span["name"]: span for span in record["spans"]}
    assert list(stages) == ["start-up", "prepare"]  # without config.py nobody notes connecting
    # each is rounded to a millisecond from a beginning of its own
    first = record["operations"][0]["begun"]
    assert stages["prepare"]["ended"] == pytest.approx(first, abs=0.002)
    assert stages["start-up"]["begun"] == 0
    assert 0.1 < stages["start-up"]["ended"] < record["seconds"]  # Python and pyinfra take long
    assert sum(sum(item["commands"].values()) for item in record["operations"]) == 4


def test_an_operation_of_one_host_is_noted_on_that_host(tmp_path: Path) -> None:
    deploy = DEPLOY.replace(
        "    files.directory", '    if host.name.endswith("1"): files.directory'
    )
    deploy = deploy.replace("import state", "import host, state")
    result = pyinfra(tmp_path, "true", "-y", inventory=TWO, deploy=deploy)
    record = notes(tmp_path)
    assert (result.returncode, record and record["exit"]) == (0, 0)
    assert record is not None
    assert [sorted(item["hosts"]) for item in record["operations"]] == [
        ["@fake/gpu1", "@fake/gpu2"], ["@fake/gpu1"], *[["@fake/gpu1", "@fake/gpu2"]] * 2,
    ]  # fmt: skip


def test_a_run_that_fails_half_way_is_noted_too(tmp_path: Path) -> None:
    code, record = run(tmp_path, "false", "-y")
    assert record is not None
    assert (code, record["exit"]) == (1, 1)
    assert record["hosts"]["@local"]["failed"] == ["Drivers | Do what false says"]
    assert record["hosts"]["@local"]["changed"] == ["Base | Change something"]


def test_a_run_that_is_killed_has_left_its_notes(tmp_path: Path) -> None:
    code, record = run(tmp_path, "kill -9 PID", "-y")
    assert record is not None
    assert (code, record["exit"]) == (-9, 1)
    assert record["hosts"]["@local"]["changed"] == ["Base | Change something"]


def test_a_run_without_any_operation_left_has_a_report_too(tmp_path: Path) -> None:
    empty_deploy = DEPLOY.split("@deploy")[0]
    result = pyinfra(tmp_path, "true", "-y", deploy=empty_deploy)
    record = notes(tmp_path)
    assert record is not None
    assert (result.returncode, record["exit"], record["operations"]) == (0, 0, [])
    assert "The run is done" in (tmp_path / "reports/latest/run.html").read_text()


@pytest.mark.parametrize("arguments", [("--dry",)])
def test_a_run_that_executes_nothing_leaves_nothing(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    code, record = run(tmp_path, "true", *arguments)
    assert (code, record) == (0, None)
    assert not (tmp_path / "reports").exists()


def test_a_failure_is_told_once_with_its_message(tmp_path: Path) -> None:
    """On one of two hosts an operation fails: what follows is neither tried there nor an error."""
    result = pyinfra(tmp_path, "install-driver", "-y", inventory=TWO)
    record = notes(tmp_path)
    assert record is not None
    assert (result.returncode, record["exit"]) == (1, 1)
    assert record["hosts"]["@fake/gpu2"]["errors"] == [
        {
            "operation": "Drivers | Do what install-driver says",
            "message": "gpuboot: no such driver\n    remedy: name another",
        }
    ]
    total = next(line for line in result.stderr.splitlines() if "Grand total" in line)
    assert total.split()[2:] == ["7", "6", "1", "-"]  # hosts, success, error, no change
    output = result.stderr.split("Grand total")[1]
    assert output.count("no such driver") == 1
    assert "failed on @fake/gpu2: Drivers | Do what install-driver says" in output
    assert "report: reports/" in output


def test_a_run_that_fails_before_it_verifies_has_a_page(tmp_path: Path) -> None:
    pyinfra(tmp_path, "install-driver", "-y", inventory=TWO)
    page = (tmp_path / "reports/latest/run.html").read_text()
    assert "The run failed" in page
    assert "no such driver" in page
    assert "Do what install-driver says" in page
    assert "verify.html" not in page


@pytest.mark.parametrize("is_shown", [False, True])
def test_our_own_messages_are_noted_too(tmp_path: Path, is_shown: bool) -> None:
    """An operation of Python has no output: its message comes from who fails the host.

    So is one that has shown its own report, as verification does: a last screen says how to go on.
    """
    deploy = """
from pyinfra.context import host, state
from pyinfra.api.operation import operation
from deploys.engine.commands import executing, fail
from deploys.engine.run_record import proved
from deploys.run.report import watch
from gpuboot.config.settings import parse_settings

watch(state, parse_settings({"cluster": {"name": "t"}}))

@operation()
def wait():
    if SHOWN and executing():
        proved(host, {"workload": 1.5})
    yield fail("not done after 5 s: no node", "look")

wait(name="Kubernetes | Wait")
"""
    pyinfra(tmp_path, "true", inventory=LOCAL)
    (tmp_path / "site.py").write_text(deploy.replace("SHOWN", str(is_shown)))
    result = run_pyinfra(["inventory.py", "site.py", "-y"], tmp_path)
    assert "failed on @local: Kubernetes | Wait" in result.stderr
    assert "report: reports/" in result.stderr.split("failed on")[1]
    record = notes(tmp_path)
    assert record is not None
    assert record["operations"][0].get("parts") == ({"workload": 1.5} if is_shown else None)
    assert record["hosts"]["@local"]["errors"] == [
        {
            "operation": "Kubernetes | Wait",
            "message": "not done after 5 s: no node\n    remedy: look",
        }
    ]
