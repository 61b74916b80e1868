"""How long an answer of a host holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from deploys.engine import answers
from deploys.engine.batch import Request, Unanswered
from deploys.engine.framed import OneLine


class Of(OneLine):
    def command(self, path: str) -> str:
        return f"cat {path}"


class OfCluster(Of):
    of_cluster = True


class World:
    """One host that answers with the number of commands it was sent."""

    def __init__(self) -> None:
        self.host: Any = SimpleNamespace(name="cp1")
        self.requests: list[Sequence[Request]] = []
        self.meanwhile: Callable[[], object] = list

    def fetch_answers(self, target: Any, requests: Sequence[Request]) -> dict[Request, Any]:
        self.requests.append(requests)
        self.meanwhile()
        return dict.fromkeys(requests, str(len(self.requests)))

    def read(self, fact: type[OneLine] = Of, path: str = "a") -> str:
        return answers.read_from(self.host, fact, path=path)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    fake_world = World()
    inventory = [fake_world.host]
    running = SimpleNamespace(inventory=inventory, is_executing=True)
    monkeypatch.setattr(answers, "state", running)
    monkeypatch.setattr(answers, "fetch_answers", fake_world.fetch_answers)
    monkeypatch.setattr(answers, "_hosts", {})
    answers.begin()
    return fake_world


def test_nothing_is_asked_twice_while_nothing_changes(world: World) -> None:
    assert [world.read(), world.read()] == ["1", "1"]


def test_a_command_on_the_host_makes_all_of_it_old(world: World) -> None:
    world.read(), world.read(OfCluster)
    answers.forget(world.host)
    assert [world.read(), world.read(OfCluster)] == ["3", "4"]


def test_a_command_elsewhere_makes_only_the_cluster_old(world: World) -> None:
    world.read(), world.read(OfCluster)
    answers.forget(SimpleNamespace(name="gpu1"))  # type: ignore[arg-type]
    assert [world.read(), world.read(OfCluster)] == ["1", "3"]


def test_an_answer_that_a_command_overtakes_is_not_kept(world: World) -> None:
    world.meanwhile = answers.forget_cluster
    assert world.read(OfCluster) == "1"
    assert world.read(OfCluster) == "2"


def test_an_answer_grows_old(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.read()
    monkeypatch.setattr(answers, "_FRESH_S", -1.0)
    assert world.read() == "2"


def test_a_wait_asks_each_time(world: World) -> None:
    world.read()
    world.host.get_fact = lambda fact, **arguments: "live"
    with answers.live():
        assert world.read() == "live"
    assert world.read() == "1"


def test_what_follows_is_asked_along_with_it_up_to_the_next_change(world: World) -> None:
    def step(path: str, differs: bool = False) -> answers.Step:
        request = Request.of(Of, {"path": path})
        assert request
        return answers.Step(differs=differs, requests=[("cp1", request)])

    cached = answers.of(world.host)
    cached.steps = [step("a", True), step("b"), step("c"), step("d", True), step("e")]
    answers.reached(world.host, 1)
    world.read(path="b")
    [batch] = world.requests
    assert [dict(request.arguments)["path"] for request in batch] == ["b", "c", "d"]


def test_what_could_not_be_answered_is_asked_again(world: World) -> None:
    request = Request.of(Of, {"path": "a"})
    assert request
    answers.of(world.host).add({request: Unanswered("its command ended with 1")})
    assert world.read() == "1"
