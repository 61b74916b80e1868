"""Nodes that come to share their GPUs otherwise: drained, labelled, proven, or kept out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploys.engine import changes, waiting
from deploys.parts.cluster.fact import PodIssues
from deploys.parts.cluster.kubectl import KUBECTL
from deploys.parts.cluster.pods_fact import GpuPods
from deploys.parts.nodes import node_sharing
from deploys.parts.nodes import sharing_operations as sharing
from deploys.parts.nodes.node_sharing import Turn
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.objects import Node
from gpuboot.cluster.readiness import Progress
from gpuboot.hosts.gpu_sharing import PLUGIN_LABEL, Offer
from gpuboot.plan import Change, Effect

LABELS: dict[str, str | None] = {
    "nvidia.com/device-plugin.config": "whole-f2bcc930",
    "nvidia.com/mig.config": "all-1g.10gb",
}
CDI = "h1: nvidia-ctk cdi generate --output /var/run/cdi/nvidia.yaml"
SET = " ".join(f"{key}={value}" for key, value in LABELS.items())
TURN = Turn(
    node="gpu1",
    host="h1",
    offer=Offer({"nvidia.com/gpu": 14}, LABELS, foreign=False),
    moved=lambda: {"timeout_s": 600},
)
UNPARTITIONED = Node(
    name="gpu1",
    address="10.0.0.2",
    versions={"kubelet": "v1.36.6"},
    ready=True,
    message="",
    allocatable={"cpu": "8", "nvidia.com/gpu": "2"},
    labels={"nvidia.com/mig.config": "all-disabled"},
    taints=(),
)
PARTITIONED = replace(
    UNPARTITIONED,
    allocatable={"nvidia.com/gpu": "14"},
    labels={
        **{key: str(value) for key, value in LABELS.items()},
        "nvidia.com/mig.config.state": "success",
    },
)


class Site:
    """A leader and a node as the API server shows it, in turn, and what they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *nodes: Node, held_pods: Any = ()) -> None:
        self.nodes, self.held_pods, self.messages = list(nodes), held_pods, list[str]()
        self.failed = ""
        self.host = cast(Any, SimpleNamespace(name="cp1", print_prefix="[cp1] ", noop=self.say))
        node_host = SimpleNamespace(name="h1", print_prefix="[h1] ")
        self.state = cast(
            Any, SimpleNamespace(inventory=SimpleNamespace(get_host=lambda name: node_host))
        )
        monkeypatch.setattr(sharing, "host", self.host)
        monkeypatch.setattr(sharing, "read", self.read)
        monkeypatch.setattr(sharing, "executing", lambda: False)
        monkeypatch.setattr(changes, "record", self.record)
        monkeypatch.setattr(node_sharing, "read_fact", lambda _, fact, **keywords: self.read(fact))
        monkeypatch.setattr(node_sharing, "run", self.run)
        monkeypatch.setattr(node_sharing, "report_failure", self.fail)
        monkeypatch.setattr(waiting, "report_failure", self.fail)
        monkeypatch.setattr(waiting, "POLL_S", 0)
        self.service = SimpleNamespace(
            STARTED_MARK="/begun",
            take_out=lambda *arguments: self.say(f"take out {arguments[2]} {arguments[5]}"),
            let_in=lambda *arguments: self.say(f"let in {arguments[2]}"),
            unmark=lambda leader, node: self.say(f"unmark {node}"),
            keep_out=lambda leader, node, reason: self.say(f"keep out {node}: {reason}"),
        )
        monkeypatch.setattr(node_sharing, "node_service", self.service)
        self.recorded: list[Change | Effect] = []

    def say(self, text: str) -> bool:
        self.messages.append(text)
        return True

    def fail(self, host: Any, message: str) -> bool:
        self.failed = message
        return False

    def record(self, *items: Change | Effect) -> None:
        self.recorded += items

    def run(self, target: Any, command: str) -> str:
        self.messages.append(f"{target.name}: {command.replace(KUBECTL, 'kubectl')}")
        return ""

    def read(self, fact: Any, **_: Any) -> Any:
        if fact is GpuPods:
            return self.held_pods
        if fact is PodIssues:
            return ()
        node = self.nodes.pop(0) if len(self.nodes) > 1 else self.nodes[0]
        return ClusterState(nodes=(node,))

    def changed(
        self, turn: Turn = TURN, timeout_s: float = 5, labels: Mapping[str, str | None] = LABELS
    ) -> bool:
        return node_sharing.changed(self.state, self.host, turn, labels, timeout_s)


BEGIN = [
    "h1: mkdir -p /etc/gpuboot && touch /begun",
    "take out gpu1 {'timeout_s': 600}",
]
LABEL = f"cp1: kubectl label --overwrite node gpu1 {SET}"


def test_a_node_that_offers_no_gpu_yet_is_only_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, replace(UNPARTITIONED, allocatable={"cpu": "8"}))
    [command] = sharing.applied._inner([TURN])
    assert str(command) == f"{KUBECTL} label --overwrite node gpu1 {SET}"
    assert not any(isinstance(item, Effect) for item in site.recorded)


@pytest.mark.parametrize(
    ("allocatable", "held_pods"),
    [
        # the device plugin restarts: the kubelet keeps the resource's name, with 0
        ({"cpu": "8", "nvidia.com/gpu": "0"}, ("ml/train",)),
        ({"cpu": "8", "nvidia.com/gpu": "0"}, ()),
        ({"cpu": "8", "nvidia.com/mig-1g.10gb": "0"}, ()),
        # the node was made anew, and its pods run on
        ({"cpu": "8"}, ("ml/train",)),
        # the API server does not tell
        ({"cpu": "8"}, None),
    ],
)
def test_a_node_is_in_use_whatever_number_it_offers_at_this_moment(
    monkeypatch: pytest.MonkeyPatch, allocatable: Mapping[str, str], held_pods: Any
) -> None:
    site = Site(monkeypatch, replace(UNPARTITIONED, allocatable=allocatable), held_pods=held_pods)
    [change] = cast(Any, list(sharing.applied._inner([TURN])))
    assert change.function is node_sharing.changed
    assert [item.kind for item in site.recorded if isinstance(item, Effect)] == ["cordon", "drain"]


def test_a_node_in_use_waits_for_the_operator_and_is_drained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(monkeypatch, UNPARTITIONED, held_pods=("ml/train",))
    look: Any = object()
    first, second = cast(Any, list(sharing.applied._inner([TURN], look, 60)))
    assert first.function is node_sharing.operands_ready
    assert second.function is node_sharing.changed
    assert list(second.args) == [TURN, LABELS, 60]
    changes = [
        (item.field, item.old, item.new) for item in site.recorded if isinstance(item, Change)
    ]
    assert changes == [
        ("label nvidia.com/device-plugin.config", None, "whole-f2bcc930"),
        ("label nvidia.com/mig.config", "all-disabled", "all-1g.10gb"),
    ]
    [cordon, drain] = [item for item in site.recorded if isinstance(item, Effect)]
    assert (cordon.kind, drain.kind, drain.gpu_pods) == ("cordon", "drain", ("ml/train",))


FAILED = replace(
    PARTITIONED, labels={**PARTITIONED.labels, "nvidia.com/mig.config.state": "failed"}
)


def test_a_layout_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, replace(FAILED, allocatable={"cpu": "8"}))
    [command] = sharing.applied._inner([TURN])
    assert str(command) == (
        f"{KUBECTL} label --overwrite node gpu1 nvidia.com/mig.config.state- && "
        f"{KUBECTL} delete pods --all-namespaces --selector app=nvidia-mig-manager "
        "--field-selector spec.nodeName=gpu1"
    )
    [restart] = [item for item in site.recorded if isinstance(item, Effect)]
    assert (restart.kind, restart.target) == ("restart", "DaemonSet nvidia-mig-manager")


def test_a_node_that_was_kept_out_is_proven_though_it_offers_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept_out = replace(FAILED, allocatable={"cpu": "8"}, taints=("gpuboot.io/upgrade:NoSchedule",))
    site = Site(monkeypatch, kept_out)
    look: Any = lambda state: Progress(True, "ready")  # noqa: E731
    ready, change = cast(Any, list(sharing.applied._inner([TURN], look, 60)))
    assert change.function is node_sharing.changed
    # else no pod of the operator's DaemonSets comes back, which this waits for
    assert ready.function(site.state, site.host, *ready.args)
    assert site.messages == ["unmark gpu1"]


def test_a_layout_that_the_mig_manager_gave_up_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(monkeypatch, FAILED)
    assert not site.changed(timeout_s=3600)
    assert "MIG layout all-1g.10gb: failed" in site.failed
    assert "after 3600 s" not in site.failed


@pytest.mark.parametrize(
    ("node", "pending"), [(FAILED, True), (UNPARTITIONED, True), (PARTITIONED, False)]
)
def test_an_upgrade_leaves_a_node_to_sharing_that_has_labels_to_change(
    monkeypatch: pytest.MonkeyPatch, node: Node, pending: bool
) -> None:
    site = Site(monkeypatch, node)
    hosts = {"cp1": site.host}
    node_host = SimpleNamespace(state=SimpleNamespace(inventory=SimpleNamespace(hosts=hosts)))
    monkeypatch.setattr(node_sharing, "current_host", node_host)
    assert node_sharing.pending("gpu1", "cp1", TURN.offer) is pending
    assert not node_sharing.pending("gpu2", "cp1", TURN.offer)


def test_a_node_that_is_as_it_should_be_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, PARTITIONED)
    assert list(sharing.applied._inner([TURN])) == []
    assert site.recorded == []


def test_a_change_is_proven_before_pods_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pending = replace(
        PARTITIONED, labels={**PARTITIONED.labels, "nvidia.com/mig.config.state": "pending"}
    )
    short_offer = replace(PARTITIONED, allocatable={"nvidia.com/gpu": "7"})
    site = Site(monkeypatch, UNPARTITIONED, pending, short_offer, PARTITIONED)
    proof = lambda gpus: site.say(f"prove {gpus}") and None  # noqa: E731
    assert site.changed(replace(TURN, proof=cast(Any, proof)))
    assert site.messages == [*BEGIN, LABEL, CDI, "prove []", "let in gpu1"]


def test_time_slicing_leaves_the_cdi_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, PARTITIONED)
    assert site.changed(labels={PLUGIN_LABEL: "time-slices-4-083b1ddf"})
    assert CDI not in site.messages


def test_a_node_that_is_not_proven_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, PARTITIONED)
    assert not site.changed(replace(TURN, proof=lambda gpus: ("vectorAdd failed", "look")))
    assert site.messages == [*BEGIN, LABEL, CDI, "keep out gpu1: vectorAdd failed"]
    assert "remedy: look" in site.failed


def test_a_layout_that_does_not_come_keeps_the_node_out(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = replace(
        PARTITIONED, labels={**PARTITIONED.labels, "nvidia.com/mig.config.state": "failed"}
    )
    site = Site(monkeypatch, failed)
    assert not site.changed(timeout_s=0)
    assert "MIG layout all-1g.10gb: failed" in site.failed
    assert site.messages[-1].startswith("keep out gpu1")


def test_pods_that_still_hold_gpus_keep_them_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a DaemonSet, which no drain ends, or all where nothing may be moved."""
    site = Site(monkeypatch, UNPARTITIONED, held_pods=("ml/agent-x7k2p",))
    assert not site.changed()
    assert site.messages == [*BEGIN, "let in gpu1"]
    assert "ml/agent-x7k2p still hold some" in site.failed


def test_a_node_that_cannot_be_drained_is_not_relabelled(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, UNPARTITIONED)
    site.service.take_out = lambda *arguments: False
    assert not site.changed()
    assert LABEL not in site.messages
