"""Nodes that come to share their GPUs otherwise while they are away for their upgrade."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from deploys.engine import answers, planned_drains
from deploys.parts.nodes import node_sharing
from deploys.parts.nodes import sharing_operations as sharing
from deploys.parts.nodes.node_sharing import Sharing
from gpuboot.cluster.objects import Node
from tests.unit.test_sharing_operation import (
    CDI,
    LABEL,
    LABELS,
    PARTITIONED,
    TURN,
    UNPARTITIONED,
    Site,
)

SHARES = Sharing(TURN.offer, 5)


class Upgraded(Site):
    """A site whose node is upgraded; it has been drained already."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *nodes: Node, held_pods: Any = ()) -> None:
        super().__init__(monkeypatch, *nodes, held_pods=held_pods)
        inventory = SimpleNamespace(hosts={"cp1": self.host}, get_host=lambda name: self.host)
        self.state = SimpleNamespace(inventory=inventory, failed_hosts=[])
        current = SimpleNamespace(state=self.state)
        monkeypatch.setattr(node_sharing, "current_host", current)
        monkeypatch.setattr(planned_drains, "sharing", {"gpu1"})

    def upgraded(self) -> bool:
        node_host: Any = SimpleNamespace(name="h1", print_prefix="[h1] ")
        return node_sharing.upgraded(self.state, node_host, "gpu1", "cp1", SHARES)


def test_its_labels_change_before_it_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    pending = replace(
        PARTITIONED, labels={**PARTITIONED.labels, "nvidia.com/mig.config.state": "pending"}
    )
    site = Upgraded(monkeypatch, UNPARTITIONED, pending, PARTITIONED)
    assert site.upgraded()
    assert site.messages == [LABEL, CDI]


def test_what_does_not_come_fails_the_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = replace(
        PARTITIONED, labels={**PARTITIONED.labels, "nvidia.com/mig.config.state": "failed"}
    )
    site = Upgraded(monkeypatch, UNPARTITIONED, failed)
    assert not site.upgraded()
    assert "MIG layout all-1g.10gb: failed" in site.failed


@pytest.mark.parametrize(
    ("node", "held_pods", "leader_failed"),
    [(PARTITIONED, (), False), (UNPARTITIONED, ("ml/agent",), False), (UNPARTITIONED, (), True)],
)
def test_it_is_left_to_its_own_phase(
    monkeypatch: pytest.MonkeyPatch, node: Node, held_pods: Any, leader_failed: bool
) -> None:
    site = Upgraded(monkeypatch, node, held_pods=held_pods)
    if leader_failed:
        site.state.failed_hosts = [site.host]
    assert site.upgraded()
    assert site.messages == []


def test_an_api_that_does_not_tell_who_holds_gpus_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Upgraded(monkeypatch, UNPARTITIONED, held_pods=None)
    assert not site.upgraded()
    assert site.messages == []


def test_only_where_preflight_has_found_that_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Upgraded(monkeypatch, UNPARTITIONED)
    assert node_sharing.of_stay("gpu1", "cp1", SHARES) == LABELS
    assert node_sharing.of_stay("gpu1", "cp1", None) == {}
    never_offered = replace(UNPARTITIONED, allocatable={"cpu": "8"})
    site.nodes = [never_offered]
    assert node_sharing.of_stay("gpu1", "cp1", SHARES) == {}, "nothing has to be drained for it"
    site.nodes = [UNPARTITIONED]
    planned_drains.sharing.clear()
    assert node_sharing.of_stay("gpu1", "cp1", SHARES) == {}
    monkeypatch.setattr(answers, "comparing", lambda: True)
    assert node_sharing.of_stay("gpu1", "cp1", SHARES) == LABELS


def test_the_plan_tells_of_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Upgraded(monkeypatch, UNPARTITIONED)
    assert list(sharing.applied._inner([TURN])) == []
    assert site.recorded == []
    monkeypatch.setattr(sharing, "executing", lambda: True)
    [change] = sharing.applied._inner([TURN])
    assert getattr(change, "function", None) is node_sharing.changed, "what is left is done"
