"""Plans of a site whose API has a virtual address, through the real command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plan.test_changes import call, plan_lines, run_living
from tests.plan.test_commands import COMMANDS
from tests.plan.test_plan import hosts, plan

ADDRESS = "192.0.2.10"
KEEPALIVED = "Kubernetes | Run what holds the API's virtual address (keepalived)"
CHECK = "Kubernetes | Check that one control plane has the API's virtual address"


def virtual(**fields: Any) -> dict[str, Any]:
    return {"cluster": {"virtual_ip": ADDRESS, **fields}}


def test_three_bare_control_planes_get_it() -> None:
    result = plan(settings=virtual(), inventory="three")
    assert result.returncode == 0, result.stderr
    steps = json.loads(result.stdout)["plan"]
    names = [step["name"] for step in steps]
    changing = {step["name"]: hosts(step) for step in steps}
    assert changing[KEEPALIVED] == {"cp1", "cp2", "cp3"}
    assert not [name for name in names if "haproxy" in name]
    waits = "Kubernetes | Wait for the API's virtual address"
    assert changing[CHECK] == {"cp1"}
    init = names.index("Kubernetes | Initialize the control plane (kubeadm init)")
    join = names.index("Kubernetes | Join the workers (kubeadm join)")
    assert names.index(KEEPALIVED) < init < names.index(waits) < join < names.index(CHECK)


@pytest.mark.parametrize(
    ("settings", "breakage", "expected"),
    [
        ({"virtual_ip": "192.0.2.12"}, {}, "[@fake/cp2] cluster.virtual_ip 192.0.2.12 is its own"),
        ({"virtual_ip": "10.9.9.9"}, {}, "[@fake/cp3] cluster.virtual_ip 10.9.9.9 is in none of"),
        ({"virtual_ip": "fd00::10"}, {}, "is of another IP version than its 192.0.2.11"),
        ({"virtual_ip_interface": "bond0"}, {}, "no network device bond0"),
        ({"endpoint": "lb:6443"}, {}, "cluster.virtual_ip and cluster.endpoint exclude each other"),
        ({}, {"cp2": ["keepalived foreign"]}, "[@fake/cp2] keepalived there has a configuration"),
        ({}, {"gpu1": [f"address eth0 {ADDRESS}/24"]}, "it has the address 192.0.2.10"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_touched(
    settings: dict[str, Any], breakage: dict[str, list[str]], expected: str
) -> None:
    result = plan(breakage, virtual(**settings), "three")
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    assert expected in output
    assert "remedy: " in output


def test_who_has_the_address_already_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour = ["port\topen", "mac\t52:54:00:12:34:56", "end\tok"]
    monkeypatch.setenv("PLAN_NEIGHBOUR", json.dumps(neighbour))
    result = plan(settings=virtual(), inventory="three")
    assert result.returncode == 1
    assert "cluster.virtual_ip 192.0.2.10 is taken: a machine that is not in the" in result.stderr
    assert "52:54:00:12:34:56" in result.stderr


def test_a_site_that_has_it_asks_each_host_once(tmp_path: Path) -> None:
    path = tmp_path / "commands.json"
    result = call(
        ["pyinfra", "tests/plan/inventories/counted.py", "deploys/site.py", "--dry"],
        virtual(),
        PLAN_COMMANDS=str(path),
        PLAN_VIRTUAL=ADDRESS,
    )
    lines = [line for line in plan_lines(result) if line]
    assert lines == ["Nothing to do: 2 hosts of gpuboot are as the settings say."]
    commands = json.loads(path.read_text())
    assert {len(host_commands) for host_commands in commands.values()} == {COMMANDS}
    assert "Who answers at an address" not in str(commands)


def test_a_living_site_goes_over_to_it() -> None:
    lines = [line.strip() for line in plan_lines(run_living("--dry", settings=virtual()))]
    for line in (
        "+ package keepalived: version (newest available)",
        "+ file /etc/systemd/system/keepalived.service.d/gpuboot.conf: 5 lines",
        "+192.0.2.10 gpuboot-api",
        "+ API server's certificate: names 192.0.2.10",
        "+ virtual address 192.0.2.10: on one control plane",
    ):
        assert line in lines
    [config] = [line for line in lines if line.startswith("+ file /etc/keepalived/keepalived.conf")]
    assert config.endswith(" lines")


def test_a_living_site_goes_back() -> None:
    lines = [line.strip() for line in plan_lines(run_living("--dry", PLAN_VIRTUAL=ADDRESS))]
    for line in ("-192.0.2.10 gpuboot-api", "~ unit keepalived.service: state active → stopped"):
        assert line in lines
