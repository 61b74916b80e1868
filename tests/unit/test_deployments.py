"""A Deployment that others need is waited for, and not for longer than it can come."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import waiting
from deploys.parts.cluster import deployments
from deploys.parts.cluster.fact import Cluster
from gpuboot.cluster import stuck
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.workloads import Workload

OPERATOR = Workload("Deployment", "mon", "op", 1, 1, True, "")
SECOND_OPERATOR = replace(OPERATOR, name="op-two", ready=0)


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(waiting, "POLL_S", 0)
    for name in ("CERTAIN_S", "UNCERTAIN_S"):
        monkeypatch.setattr(stuck, name, 0.0)
    messages: list[str] = []
    monkeypatch.setattr(waiting, "report_failure", lambda _, text: messages.append(text))

    def run(*items: Workload, issues: tuple[PodIssue, ...] = ()) -> tuple[Any, list[str]]:
        state = ClusterState(workloads=items)
        monkeypatch.setattr(
            deployments, "read_fact", lambda _, fact, **__: state if fact is Cluster else issues
        )
        host = cast(Host, SimpleNamespace(print_prefix="", name="cp1"))
        return deployments._running(cast(State, None), host, "mon/op", 30), messages

    return run


def test_only_this_one_is_waited_for(leader: Any) -> None:
    assert leader(OPERATOR, SECOND_OPERATOR) == (True, [])


def test_one_that_does_not_exist_ends_the_wait(leader: Any) -> None:
    completed, [message] = leader(SECOND_OPERATOR)
    assert not completed
    assert "mon/op: it does not exist, and nothing makes it" in message


def test_one_whose_pods_are_refused_ends_the_wait_with_the_event(leader: Any) -> None:
    cause = 'pods "op-1" is forbidden: error looking up service account mon/op: not found'
    refusal = PodIssue("mon", "op-5f7d8c9b6d", "", cause, kind="refused")
    completed, [message] = leader(replace(OPERATOR, ready=0, missing=1), issues=(refusal,))
    assert not completed
    assert cause in message
    assert "remedy: correct or remove what refuses them" in message
