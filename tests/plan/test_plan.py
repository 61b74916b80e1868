"""The plan through the real command line, on hosts that do not exist: what would run, and where."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import run_pyinfra

ROOT = Path(__file__).resolve().parents[2]
PHASES = [
    "Base", "Packages", "Control plane upgrade", "Node upgrades", "Drivers", "DCGM", "Runtime",
    "Kubernetes", "Gate", "Helm", "Switched off", "Custom resources", "GPU Operator", "GPU sharing",
    "DCGM exporter", "Metrics", "Storage", "Monitoring", "Logs", "Teams", "Rollout",
    "DCGM upgrade", "Verify",
]  # fmt: skip


def plan(
    breakage: dict[str, list[str]] | None = None,
    settings: dict[str, Any] | None = None,
    inventory: str = "site",
    deploy: str = "site",
    arguments: Sequence[str] = ("--json",),
) -> subprocess.CompletedProcess[str]:
    """`pyinfra … deploys/site.py --dry --json` for the site of three fake servers."""
    variables = {
        "PLAN_BREAKAGE": json.dumps(breakage or {}),
        "PLAN_SETTINGS": json.dumps(settings or {}),
    }
    files = [f"tests/plan/inventories/{inventory}.py", f"deploys/{deploy}.py"]
    return run_pyinfra([*files, "--dry", *arguments], environment=variables)


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    result = plan()
    assert result.returncode == 0, result.stderr
    operations: list[dict[str, Any]] = json.loads(result.stdout)["plan"]
    return operations


def phase(step: dict[str, Any]) -> str:
    return str(step["name"]).split(" | ")[0]


def hosts(step: dict[str, Any]) -> set[str]:
    """The hosts that a step would change."""
    changing = [*step["hosts_with_change"], *step["hosts_with_conditional_change"]]
    return {str(host).removeprefix("@fake/") for host in changing}


def test_the_phases_come_in_order(steps: list[dict[str, Any]]) -> None:
    order = list(dict.fromkeys(phase(step) for step in steps))
    assert order == [name for name in PHASES if name in order]
    assert {"Base", "Drivers", "Runtime", "Kubernetes", "Verify"} <= set(order)


def test_a_node_without_gpus_gets_no_driver_and_no_toolkit(steps: list[dict[str, Any]]) -> None:
    assert set().union(*(hosts(step) for step in steps if phase(step) == "Drivers")) == {"gpu1"}
    toolkit = [step for step in steps if "toolkit" in step["name"].lower()]
    assert toolkit
    assert set().union(*(hosts(step) for step in toolkit)) == {"gpu1"}


def test_cluster_work_is_done_by_the_leader_alone(steps: list[dict[str, Any]]) -> None:
    cluster = set(PHASES[PHASES.index("Helm") :])
    assert {host for step in steps if phase(step) in cluster for host in hosts(step)} == {"cp1"}


def test_the_network_is_written_after_the_cluster_was_compared(steps: list[dict[str, Any]]) -> None:
    names = [step["name"] for step in steps]
    compared = names.index("Kubernetes | Check settings that a cluster cannot change")
    assert compared < names.index("Kubernetes | Install the pod network (flannel)")


def test_a_shell_that_greets_is_told_once_and_passed_over() -> None:
    result = plan()
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert output.count("its shell prints text beside every command") == 1
    assert "[@fake/gpu1]" in output
    assert "*** Welcome to gpu1.example.com ***; remedy" in output


def test_an_operation_s_name_holds_for_every_host() -> None:
    """pyinfra shows one name for all hosts of an operation: none may speak of one host alone."""
    for file in sorted((ROOT / "deploys").rglob("*.py")):
        for call in (
            node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)
        ):
            name = next(
                (ast.unparse(node.value) for node in call.keywords if node.arg == "name"), ""
            )
            assert not re.search(r"\{[^}]*(context\.node\b|context\.state|flavour)", name), name


def test_reset_asks_for_the_cluster_s_name() -> None:
    settings = {"cluster": {"name": "prod"}}
    for confirmation in ([], ["--data", "gpuboot_reset=yes"], ["--data", "gpuboot_reset=test"]):
        result = plan(settings=settings, deploy="reset", arguments=confirmation)
        assert result.returncode == 1
        assert "this resets the cluster prod (cp1, " in result.stdout + result.stderr
        assert "--data gpuboot_reset=prod" in result.stdout + result.stderr
    arguments = ["--json", "--data", "gpuboot_reset=prod"]
    result = plan(settings=settings, deploy="reset", arguments=arguments)
    assert result.returncode == 0, result.stderr
    names = [step["name"] for step in json.loads(result.stdout)["plan"]]
    assert names[-1] == "Reset | List volumes that stay"


def test_a_plan_without_a_search_for_changes_is_told() -> None:
    warning = "--dry with -y shows no plan"
    assert warning in plan(arguments=["-y"]).stderr
    assert warning not in plan(arguments=[]).stderr


def test_every_operation_says_what_it_is(steps: list[dict[str, Any]]) -> None:
    assert all(" | " in step["name"] for step in steps)


def test_all_problems_of_all_hosts_are_told_together() -> None:
    result = plan(
        {
            "gpu1": ["swap /swapfile", "cgroup 1"],
            "cpu1": ["os_version 20.04", "os_name Ubuntu 20.04"],
        }
    )
    assert result.returncode == 1
    output = result.stdout + result.stderr
    assert "nothing was changed" in output
    for part in ("[@fake/gpu1]", "cgroup v1", "[@fake/cpu1]", "20.04", "remedy"):
        assert part in output, output


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"clutser": {}}, "unknown setting clutser"),
        ({"cluster": {"service_cidr": "192.0.2.0/25"}}, "192.0.2"),
        ({"versions": {"kubernetes": {"version": "1.32.9", "minor": "1.32"}}}, "gpu-operator"),
    ],
)
def test_wrong_settings_stop_before_anything(settings: dict[str, Any], expected: str) -> None:
    result = plan(settings=settings)
    assert result.returncode == 1
    assert expected in result.stdout + result.stderr
    assert "remedy" in result.stdout + result.stderr


def slack(path: Path) -> dict[str, Any]:
    return {"alertmanager": {"slack": {"webhook": {"file": str(path)}}}}


def test_a_secret_that_is_not_there_stops_before_anything(tmp_path: Path) -> None:
    result = plan(settings=slack(tmp_path / "missing"))
    output = result.stdout + result.stderr
    assert result.returncode == 1
    assert "nothing was changed" in output
    assert "alertmanager.slack.webhook.file" in output
    assert "No such file" in output


def test_a_secret_is_planned_and_shown_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "slack"
    file.write_text("https://hooks.example.com/services/very-secret-token\n")
    file.chmod(0o644)
    result = plan(settings=slack(file))
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "Store the receivers' credentials" in output
    assert f"others can read {file}" in output
    assert "very-secret-token" not in output


@pytest.mark.parametrize(("inventory", "deploy"), [("site", "site"), ("docker", "standalone")])
def test_passwords_are_planned_and_shown_nowhere(
    inventory: str, deploy: str, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("very-secret\n")
    login = {"username": "me", "password": {"file": str(tmp_path / "password")}}
    settings = {
        "proxy": {"https": "http://me:very-secret@proxy.example:3128"},
        "registries": {"mirror.example": login},
    }
    result = plan(None, settings, inventory, deploy, ["-vvv"])
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "Store proxy and registry credentials for image pulls" in output
    assert "very-secret" not in output


@pytest.mark.parametrize("inventory", ["docker", "example", "quickstart", "vagrant"])
def test_the_inventories_a_person_starts_from_load(inventory: str) -> None:
    result = run_pyinfra([f"inventories/{inventory}.py", "debug-inventory"])
    assert result.returncode == 0, result.stderr
    assert "gpus" in result.stdout + result.stderr


ROCKY = [
    "os_id rocky",
    "os_version 9.6",
    "os_name Rocky Linux 9.6 (Blue Onyx)",
    "kernel 5.14.0-570.el9.x86_64",
    "dkms_package available",
]


def test_a_rocky_9_node_is_planned_with_dnf_beside_ubuntu() -> None:
    result = plan({"gpu1": ROCKY}, arguments=())
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "@fake/gpu1: Rocky Linux 9 is experimental" in output
    assert "dnf repository cuda: key 610C7B14E068A878070DA4E99CD0A493D42D0685" in output
    assert "dnf module nvidia-driver: stream 595-open" in output
    for package in ("iproute-tc", "kernel-devel-5.14.0-570.el9.x86_64", "kmod-nvidia-open-dkms"):
        assert package in output
    assert "apt repository docker" in output, "the other nodes are Ubuntu's"


def test_docker_hosts_have_a_plan_of_their_own() -> None:
    result = plan(inventory="docker", deploy="standalone")
    assert result.returncode == 0, result.stderr
    planned: list[dict[str, Any]] = json.loads(result.stdout)["plan"]
    order = list(dict.fromkeys(phase(step) for step in planned))
    expected = ["Base", "Drivers", "DCGM", "Toolkit", "Docker", "Runtime", "Compose", "Verify"]
    assert order == expected
    concerned = {name: {h for s in planned if phase(s) == name for h in hosts(s)} for name in order}
    assert concerned["Drivers"] == concerned["Toolkit"] == {"gpu1"}
    assert concerned["Docker"] == concerned["Compose"] == {"gpu1", "mon1"}
    names = " ".join(step["name"] for step in planned)
    assert "Kubernetes" not in names
    assert "swap" not in names


@pytest.mark.parametrize(("inventory", "deploy"), [("docker", "site"), ("site", "standalone")])
def test_an_inventory_of_the_other_kind_is_refused(inventory: str, deploy: str) -> None:
    result = plan(inventory=inventory, deploy=deploy)
    assert result.returncode == 1
    assert "this inventory is one of" in result.stdout + result.stderr
    assert "remedy: run deploys/" in result.stdout + result.stderr


def test_docker_hosts_have_no_cluster_to_reset() -> None:
    result = plan(inventory="docker", deploy="reset", arguments=["--data", "gpuboot_reset=gpuboot"])
    assert result.returncode == 1
    assert "the inventory is of Docker hosts: there is no cluster" in result.stdout + result.stderr


def test_a_proof_of_a_node_that_there_is_not_is_refused() -> None:
    data_options = ("--data", "gpuboot_level=quick", "--data", "gpuboot_nodes=gpu1,gpu9")
    result = plan(deploy="verify", arguments=data_options)
    assert result.returncode != 0
    assert "gpu9 is no node with GPUs of this inventory" in result.stdout + result.stderr
