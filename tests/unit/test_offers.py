"""What a node offers of its GPUs beside what it is to offer, and the labels that make it so."""

from __future__ import annotations

from gpuboot.cluster import offers
from gpuboot.cluster.objects import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import gpu_sharing
from tests.unit.test_sharing import H100, NODE, shared


def node_status(labels: dict[str, str], **allocatable: str) -> Node:
    return Node(
        name="gpu2",
        address="10.0.0.2",
        versions={"kubelet": "v1.36.6"},
        ready=True,
        message="",
        allocatable={"cpu": "8", **allocatable},
        labels=labels,
        taints=(),
    )


def test_a_layout_is_there_when_the_mig_manager_and_the_plugin_say_so() -> None:
    settings = shared(mig="all-1g.10gb")
    offer = gpu_sharing.offer(NODE, settings, [H100] * 2)
    labels = {name: str(value) for name, value in offer.labels.items()}
    ready_labels = {**labels, "nvidia.com/mig.config.state": "success"}
    gpus = {"nvidia.com/gpu": "14"}
    assert "not set" in offers.offer_problem(node_status({}), offer)
    assert "pending" in offers.offer_problem(
        node_status({**labels, "nvidia.com/mig.config.state": "pending"}, **gpus), offer
    )
    two = {"nvidia.com/gpu": "2"}
    assert offers.offer_problem(node_status(ready_labels, **two), offer) == "2 of 14 nvidia.com/gpu"
    assert offers.offer_problem(node_status(ready_labels, **gpus), offer) == ""
    assert offers.offer_problem(None, offer) == "no node of the cluster"


def test_what_the_mig_manager_said_of_another_layout_goes_with_it() -> None:
    offer = gpu_sharing.offer(NODE, shared(mig="all-1g.10gb"), [H100] * 2)
    before = {"nvidia.com/mig.config": "all-2g.20gb", "nvidia.com/mig.config.state": "success"}
    changed = offers.label_changes(before, offer)
    assert changed["nvidia.com/mig.config"] == "all-1g.10gb"
    assert changed["nvidia.com/mig.config.state"] is None
    assert "nvidia.com/mig.config.state" not in offers.label_changes({}, offer)


def test_a_layout_that_failed_is_tried_again_and_not_waited_for() -> None:
    offer = gpu_sharing.offer(NODE, shared(mig="all-1g.10gb"), [H100] * 2)
    labels = {name: str(value) for name, value in offer.labels.items()}
    failed = {**labels, "nvidia.com/mig.config.state": "failed"}
    assert offers.label_changes(failed, offer) == {"nvidia.com/mig.config.state": None}
    assert offers.offer_problem(node_status(failed), offer) == "MIG layout all-1g.10gb: failed"
    assert offers.given_up(failed, offer)
    for state in ("success", "pending"):
        assert not offers.given_up({**labels, "nvidia.com/mig.config.state": state}, offer)
    assert not offers.given_up(failed, gpu_sharing.offer(NODE, parse_settings({})))


def test_labels_of_others_stay() -> None:
    empty_offer = gpu_sharing.offer(NODE, parse_settings({}))
    key = "nvidia.com/device-plugin.config"
    own_labels = {key: "mine", "nvidia.com/mig.config": "all-1g.10gb"}
    assert offers.label_changes(own_labels, empty_offer) == {}
    assert offers.label_changes({key: "time-slices-4-0a1b2c3d"}, empty_offer) == {key: None}
