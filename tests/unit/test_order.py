"""The one order of all hosts' operations."""

from __future__ import annotations

from graphlib import CycleError

import pytest

from deploys.engine.order import merged

LINES = {"init": (1,), "label": (2,), "join": (3,), "wait": (4,)}


def test_what_stands_first_in_the_deploy_comes_first() -> None:
    assert merged([["join"], ["init", "label", "wait"]], LINES) == ["init", "label", "join", "wait"]


def test_the_order_of_a_host_is_kept_whatever_the_lines() -> None:
    assert merged([["wait", "init"], ["join"]], LINES) == ["join", "wait", "init"]


def test_hosts_that_contradict_each_other_are_an_error() -> None:
    with pytest.raises(CycleError):
        merged([["init", "join"], ["join", "init"]], LINES)
