"""DCGM's host engine in the plan: on which hosts, and when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plan.test_plan import hosts, phase, plan

ENGINE = "DCGM | Run DCGM's host engine 4.6.1"
UPGRADE = "DCGM upgrade | Upgrade DCGM's host engine 4.6.1"


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    result = plan(settings={"dcgm": "host"})
    assert result.returncode == 0, result.stderr
    plan_steps: list[dict[str, Any]] = json.loads(result.stdout)["plan"]
    return plan_steps


def test_gpu_nodes_get_an_engine(steps: list[dict[str, Any]]) -> None:
    [step] = [step for step in steps if step["name"] == ENGINE]
    assert hosts(step) == {"gpu1"}


def test_it_comes_after_the_driver_and_is_upgraded_after_the_exporters(
    steps: list[dict[str, Any]],
) -> None:
    order = list(dict.fromkeys(phase(step) for step in steps))
    expected = [
        "Drivers",
        "DCGM",
        "Kubernetes",
        "GPU Operator",
        "Rollout",
        "DCGM upgrade",
        "Verify",
    ]
    assert [name for name in order if name in expected] == expected
    assert UPGRADE in [step["name"] for step in steps]


def test_embedded_engines_need_nothing_of_hosts() -> None:
    result = plan()
    assert result.returncode == 0, result.stderr
    dcgm_steps = [
        step for step in json.loads(result.stdout)["plan"] if phase(step).startswith("DCGM ")
    ]
    assert not any(hosts(step) for step in dcgm_steps)


def test_a_port_in_use_ends_the_run_before_anything_is_touched() -> None:
    result = plan({"gpu1": ["port 5555 python3"]}, {"dcgm": "host"})
    assert result.returncode == 1
    assert "TCP port 5555 is in use by python3" in result.stdout + result.stderr


@pytest.mark.parametrize(("inventory", "deploy"), [("site", "site"), ("docker", "standalone")])
def test_hosts_with_nvswitches_get_a_timer_that_tells_of_their_errors(
    inventory: str, deploy: str
) -> None:
    name = "Drivers | Tell Prometheus of fatal errors of NVSwitches"
    switch = {"gpu1": ["pci 0000:05:00.0 0x22a3 0x068000"]}
    result = plan(switch, inventory=inventory, deploy=deploy)
    assert result.returncode == 0, result.stderr
    [step] = [step for step in json.loads(result.stdout)["plan"] if step["name"] == name]
    assert hosts(step) == {"gpu1"}
