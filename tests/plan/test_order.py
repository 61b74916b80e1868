"""What a first run begins early, and what it waits for last."""

import json
from typing import Any

import pytest

from tests.plan.test_changes import call
from tests.plan.test_plan import plan

BARE = {"preflight": {"max_clock_skew_s": 1e12}}


@pytest.fixture(scope="module")
def names() -> list[str]:
    result = plan()
    assert result.returncode == 0, result.stderr
    steps: list[dict[str, Any]] = json.loads(result.stdout)["plan"]
    return [step["name"].partition(" (")[0] for step in steps]


def test_pulls_go_on_while_nodes_are_made(names: list[str]) -> None:
    pulled = names.index("Kubernetes | Start pulling images")
    assert names.index("Runtime | Start containerd") < pulled
    assert pulled < names.index("Kubernetes | Initialize the control plane")


def test_a_bare_host_gets_its_packages_in_one_transaction() -> None:
    """After what adds repositories, which images of servers have already."""
    result = call(["gpuboot", "plan", "tests/plan/inventories/site.py"], BARE)
    fields: dict[str, list[str]] = {}
    titles = set()
    for step in json.loads(result.stdout)["steps"]:
        for item in (item for item in step["hosts"] if item["host"] == "@fake/gpu1"):
            for change in item["changes"]:
                if change["subject"].startswith("package "):
                    titles.add(f"{step['phase']} | {step['operation']}")
                    fields.setdefault(change["subject"], []).append(change["field"])
    assert titles == {
        "Base | Install what adds package repositories",
        "Packages | Install all packages in one transaction",
    }
    assert set(map(tuple, fields.values())) == {("version",)}
    names = {name.removeprefix("package ") for name in fields}
    assert {"containerd.io", "curl", "kubelet", "nvidia-container-toolkit", "nvidia-open"} < names


def test_all_repositories_of_a_host_are_added_at_once(names: list[str]) -> None:
    """Each operation that adds some reads their indices."""
    additions = [name for name in names if "| Add " in name and "repositor" in name]
    assert additions == ["Packages | Add package repositories"]
    result = plan(inventory="docker", deploy="standalone")
    steps: list[dict[str, Any]] = json.loads(result.stdout)["plan"]
    docker_names = [step["name"] for step in steps if "| Add " in step["name"]]
    assert docker_names == ["Base | Add package repositories"]


def test_charts_are_applied_before_anything_is_waited_for(names: list[str]) -> None:
    """The exporter of the GPU Operator takes longest until it is ready, so it comes first."""
    order = [
        "Custom resources | Apply the first custom resources of kube-prometheus-stack",
        "GPU Operator | Deploy gpu-operator",
        "Monitoring | Wait until a node can run pods",
        "Monitoring | Renew the custom resources of kube-prometheus-stack",
        "Monitoring | Deploy kube-prometheus-stack",
        "Rollout | Wait until nodes, workloads and GPUs are ready",
        "Verify | Verify every GPU, from the PCI bus to Prometheus",
    ]
    assert [name for name in names if name in order] == order
    assert [name for name in names if "Wait until" in name] == [order[2], order[5]]
