"""Reading hosts: what counts as busy, and how far a clock is off."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gevent.event import Event
from pyinfra.api.inventory import Inventory

from deploys.engine import connections, time_notes
from deploys.run import collect as reading
from deploys.run import context
from deploys.run.collect import busy
from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import lock
from gpuboot.hosts.host_clock import skew
from gpuboot.hosts.node_state import parse
from tests.unit.test_node_state import ANSWER

STATE = replace(parse(ANSWER), package_lock_holders=(), cloud_init="done")


def test_busy() -> None:
    assert busy(STATE) == ""
    assert busy(replace(STATE, cloud_init="running")) == "cloud-init is running"
    assert "apt-get (pid 7)" in busy(replace(STATE, package_lock_holders=("apt-get (pid 7)",)))


@pytest.mark.parametrize(
    ("clock", "expected"), [(105.0, 0.0), (100.0, 0.0), (113.0, 3.0), (97.5, -2.5)]
)
def test_a_slow_answer_is_no_skew(clock: float, expected: float) -> None:
    assert skew(clock, before=100.0, after=110.0) == expected


def test_busy_hosts_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = parse_settings({})
    run = context.Run(cast(Inventory, None), settings, lock(settings), ())
    waits: list[int] = []

    def collect(
        inventory: Inventory, hosts: list[str], wait_s: int, spared: list[str]
    ) -> tuple[Any, Any]:
        waits.append(wait_s)
        return {}, []

    monkeypatch.setattr(context, "_begin", lambda: run)
    monkeypatch.setattr(context, "collect", collect)
    context.read()
    assert waits == [600]


def test_a_loaded_driver_is_asked_for_its_mig_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    queried_hosts: list[str] = []

    def fake_get_fact(_: object, host: Any, *args: object, **options: object) -> Any:
        queried_hosts.append(host.name)
        return {0x3FFF: {"1g.99gb": 7}} if host.name == "gpu1" else None  # gpu3 did not answer

    class Hosts:
        def get_host(self, name: str) -> Any:
            return SimpleNamespace(name=name)

    monkeypatch.setattr(reading, "get_fact", fake_get_fact)
    monkeypatch.setattr(reading, "current_host", lambda host: nullcontext())
    loaded, bare = replace(STATE, driver_loaded="595.91.07"), replace(STATE, driver_loaded="")
    states = {"gpu1": loaded, "gpu2": bare, "gpu3": loaded}
    updated = reading.with_mig_profiles(cast(Inventory, Hosts()), states)
    assert {name: dict(state.mig_profiles) for name, state in updated.items()} == {
        "gpu1": {0x3FFF: {"1g.99gb": 7}},
        "gpu3": {},
    }
    assert sorted(queried_hosts) == ["gpu1", "gpu3"]


class Names:
    """Hosts by their names alone."""

    def get_host(self, name: str) -> str:
        return name


def test_a_run_goes_on_without_a_worker_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(host: str, wait_s: int, locked: object) -> Any:
        return STATE if host == "cp1" else connections.unreachable_problem(host)

    class Everywhere:
        limit_hosts = None

    monkeypatch.setattr(reading, "run_state", Everywhere)
    monkeypatch.setattr(reading, "_read_settled", read)
    monkeypatch.setattr(connections, "unreachable", {"gpu1": "no route", "gpu2": "no route"})
    inventory = cast(Inventory, Names())
    states, problems = reading.collect(inventory, ["cp1", "gpu1", "gpu2"], 0, spared=["gpu1"])
    assert list(states) == ["cp1"]
    assert [problem.host for problem in problems] == ["gpu2"]


def test_a_run_that_may_change_something_does_not_wait_where_another_one_is_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = replace(STATE, package_lock_holders=("apt (pid 7)",), run_lock="x", run_lock_age=3)
    monkeypatch.setattr(reading, "_read", lambda host: state)
    monkeypatch.setattr(time_notes, "deploy", "site.py")

    class Host:
        name = "cp1"

    locked = Event()
    assert reading._read_settled(cast(Any, Host()), 600, locked) is state
    assert locked.is_set()
