"""Reading hosts: what counts as busy, and how far a clock is off."""

from dataclasses import replace
from typing import Any, cast

import pytest
from pyinfra.api.inventory import Inventory

from deploys.run import context
from deploys.run.collect import busy, skew
from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import lock
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


def test_busy_hosts_are_waited_for_as_long_as_the_site_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = parse_settings({"preflight": {"wait_s": 77}})
    run = context.Run(cast(Inventory, None), settings, lock(settings), ())
    waits: list[int] = []

    def collect(inventory: Inventory, hosts: list[str], wait_s: int) -> tuple[Any, Any]:
        waits.append(wait_s)
        return {}, []

    monkeypatch.setattr(context, "_begin", lambda: run)
    monkeypatch.setattr(context, "collect", collect)
    context.read()
    assert waits == [77]
