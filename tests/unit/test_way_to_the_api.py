"""Which host has which part in the way to the API servers, and who holds the virtual address."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.exceptions import PyinfraError

from deploys.engine import remote, waiting
from deploys.parts.api_endpoint import operations as api_endpoint
from deploys.parts.api_endpoint import virtual_address_operations as operations
from deploys.phases import api_endpoint as phase
from deploys.run.context import Context
from gpuboot.cluster.endpoint import decided
from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Cluster
from gpuboot.hosts.node_state import NodeState
from tests.unit.test_virtual_address import (
    CP1,
    CP2,
    GPU1,
    NODES,
    PLAIN,
    cluster,
    full_settings,
    site,
    state,
)


@pytest.mark.parametrize(("address", "url"), [("127.0.0.3", "//127.0.0.3:"), ("::1", "//[::1]:")])
def test_a_wait_for_the_address_ends(
    monkeypatch: pytest.MonkeyPatch, address: str, url: str
) -> None:
    monkeypatch.setattr(operations, "_ANSWERS_S", 0)
    command = operations.wait_command(address).get_raw_value()
    assert f"https:{url}6443/readyz" in command
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert result.returncode == 1
    assert f"no API server answers at the virtual address {address} within 0 s" in result.stderr
    assert "remedy: see `journalctl -u keepalived`" in result.stderr


class Hosts:
    """Control planes, of which some have the address."""

    def __init__(self, *holders: str, fails: str = "") -> None:
        self.holders, self.fails = holders, fails
        self.inventory = self

    def get_host(self, name: str) -> str:
        return name

    def run(self, target: str, command: str) -> str:
        assert command == "ip -o address show to 10.0.0.10"
        if target == self.fails:
            raise PyinfraError("it broke")
        return "2: eth0    inet 10.0.0.10/32 scope global eth0\n" if target in self.holders else ""


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (Hosts("cp2"), ""),
        (Hosts(), "is on no control plane"),
        (Hosts("cp1", "cp3"), "is on cp1, cp3"),
        (Hosts("cp1", fails="cp3"), "it broke"),
    ],
)
def test_two_that_do_not_hear_each_other_are_told(
    monkeypatch: pytest.MonkeyPatch, hosts: Hosts, expected: str
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(remote, "run", hosts.run)
    monkeypatch.setattr(operations, "_HELD_S", 0)
    monkeypatch.setattr(waiting, "report_failure", lambda host, message: lines.append(message))
    controls = ["cp1", "cp2", "cp3"]
    succeeded = operations._one_holder(cast(Any, hosts), cast(Any, None), "10.0.0.10", controls)
    assert bool(succeeded) == (not expected)
    assert expected in "".join(lines)


def executed_operations(
    monkeypatch: pytest.MonkeyPatch, node: Node, settings: Cluster, machine: NodeState
) -> list[tuple[str, dict[str, Any]]]:
    """The operations of a host, in order, with what they are given."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def stand_in(name: str) -> Any:
        return lambda **arguments: calls.append((name, arguments))

    for module in (operations, api_endpoint):
        for name in (
            "present",
            "absent",
            "answers",
            "single_holder",
            "resolvable",
            "balanced",
            "unbalanced",
        ):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, stand_in(name))
    monkeypatch.setattr(Context, "platform", SimpleNamespace(package_manager="apt"))
    monkeypatch.setattr(Context, "present", NODES)
    states = {**site(), node.host: machine}
    every = full_settings(settings)
    context = Context(every, versions.lock(every), NODES, node, states)
    phase.reached(context)
    if node.role == "worker":
        phase.wait_for_virtual_address(context)
    phase.settle_address(context)
    return calls


def test_each_host_has_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name, _ in executed_operations(monkeypatch, CP1, cluster(), site()["cp1"])]
    assert names == ["present", "resolvable", "single_holder"]
    worker = executed_operations(monkeypatch, GPU1, cluster(), site()["gpu1"])
    assert [name for name, _ in worker] == ["resolvable", "answers"]
    assert worker[0][1]["address"] == "10.0.0.10"
    assert not worker[0][1]["wait"]


def test_a_living_site_goes_over_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = {"/etc/kubernetes/kubelet.conf": "https://gpuboot-api:6443"}
    balanced = state("eth0 10.0.0.21/24", load_balancer="ours", kubeconfigs=joined)
    over = executed_operations(monkeypatch, GPU1, cluster(), balanced)
    assert [name for name, _ in over] == ["resolvable", "unbalanced", "answers"]
    assert over[0][1]["wait"]
    live_state = state("eth0 10.0.0.1/24", keepalived="ours", virtual_address="10.0.0.10")
    plain = decided(PLAIN, "")
    assert [name for name, _ in executed_operations(monkeypatch, CP2, plain, live_state)] == [
        "resolvable",
        "absent",
    ]
    back = executed_operations(monkeypatch, GPU1, plain, site()["gpu1"])
    assert [name for name, _ in back] == ["balanced", "resolvable"]
