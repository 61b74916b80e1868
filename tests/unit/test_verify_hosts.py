"""How many commands a verification sends to a host, and what it makes of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from gevent.event import Event

from deploys.engine import answers
from deploys.engine.batch import Request, Unanswered
from deploys.parts.driver.nvidia_fact import NvidiaFact
from deploys.parts.node.fact import NodeFact
from deploys.parts.node.outside_name_fact import OutsideName
from deploys.parts.verify import verify_hosts
from deploys.parts.verify.fact import HostChecks
from deploys.parts.verify.verify_hosts import Discovery, read_hosts, read_site
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import lock
from gpuboot.verify.checks.one_file import CommandOutput
from gpuboot.verify.gpu_state import parse
from tests.unit.test_gpu_state import GOOD, machine

NODES = (
    Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, True),
    Node("10.0.0.2", "gpu1", "10.0.0.2", "worker", 2, False),
    Node("10.0.0.3", "gpu2", "10.0.0.3", "worker", 2, False),
)
OUTPUTS = {"nvlink": CommandOutput("GPU 0: x\n")}
ANSWERS: dict[Any, Any] = {
    NodeFact: machine(), NvidiaFact: parse(GOOD), HostChecks: OUTPUTS,
    OutsideName: "resolved",
}  # fmt: skip


@pytest.fixture
def host_commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[Any]]]:
    """Commands that hosts get: inventory name, and the facts in it."""
    commands = []

    def fetch_answers(host: Any, requests: Sequence[Request]) -> dict[Request, Any]:
        commands.append((host.name, [request.fact for request in requests]))
        return {request: ANSWERS[request.fact] for request in requests}

    class Inventory:
        @staticmethod
        def get_host(name: str) -> Any:
            return SimpleNamespace(name=name, connected=name != "10.0.0.2")

    monkeypatch.setattr(answers, "fetch_answers", fetch_answers)
    monkeypatch.setattr(verify_hosts, "inventory", Inventory)
    monkeypatch.setattr(verify_hosts, "say", lambda _: None)
    return commands


def test_each_gpu_node_gets_one_command_and_others_none(host_commands: list[Any]) -> None:
    hosts = read_hosts(Settings(), lock(Settings()), Discovery(NODES))
    assert host_commands == [
        (name, [NodeFact, NvidiaFact, HostChecks]) for name in ("10.0.0.2", "10.0.0.3")
    ]
    assert [(host.node, len(host.gpus), host.error) for host in hosts] == [
        ("gpu1", 2, ""),
        ("gpu2", 2, ""),
    ]


def test_what_was_read_a_moment_ago_is_not_asked_again(host_commands: list[Any]) -> None:
    host_states = Discovery(NODES, {node.host: machine() for node in NODES})
    read_hosts(Settings(), lock(Settings()), host_states)
    assert host_commands == [(name, [NvidiaFact, HostChecks]) for name in ("10.0.0.2", "10.0.0.3")]


def test_a_host_that_does_not_answer_is_a_finding_and_stops_no_other(
    host_commands: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_answers = answers.fetch_answers

    def silent(host: Any, requests: Sequence[Request]) -> dict[Request, Any]:
        replies = fetch_answers(host, requests)
        return replies if host.connected else dict.fromkeys(replies, Unanswered("no route to host"))

    monkeypatch.setattr(answers, "fetch_answers", silent)
    hosts = read_hosts(Settings(), lock(Settings()), Discovery(NODES))
    assert [host.error for host in hosts] == ["cannot be reached: no route to host", ""]


def test_control_planes_are_read_beside_gpu_nodes(
    host_commands: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_answers, leader_queried = answers.fetch_answers, Event()

    def waiting(host: Any, requests: Sequence[Request]) -> dict[Request, Any]:
        if host.name == "cp1":
            leader_queried.set()
            return dict.fromkeys(requests, Unanswered("no route to host"))
        assert leader_queried.wait(timeout=5)
        return fetch_answers(host, requests)

    monkeypatch.setattr(answers, "fetch_answers", waiting)
    site = read_site(Settings(), lock(Settings()), lambda: Discovery(NODES))
    assert [host.error for host in site.hosts] == ["", ""]
    assert [host.outside for host in site.hosts] == ["resolved", "resolved"]
    assert [control_plane.error for control_plane in site.control_planes] == [
        "it could not be read: no route to host"
    ]


def test_a_name_that_a_host_does_not_tell_of_makes_it_no_unreadable_host(
    host_commands: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, OutsideName, Unanswered("no answer"))
    hosts = read_hosts(Settings(), lock(Settings()), Discovery(NODES), name="nvcr.io")
    assert [(host.error, host.outside) for host in hosts] == [("", ""), ("", "")]
    assert host_commands[0][1] == [NodeFact, NvidiaFact, HostChecks, OutsideName]
