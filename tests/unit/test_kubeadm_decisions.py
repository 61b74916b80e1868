"""What somebody has set otherwise than kubeadm, and a run leaves: named, and not put back."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.cluster.kubeadm_objects import COREFILE, DNS, decisions, kubeadm_drift
from tests.unit.test_kubeadm_objects import Change, replaced, site


def _scaled(item: dict[str, Any]) -> None:
    item["spec"]["replicas"] = 5


def test_a_changed_corefile_is_named_with_both_texts_and_left() -> None:
    change = replaced("Corefile", "forward . /etc/resolv.conf", "forward . 192.0.2.1")
    state = site(COREFILE, change)
    assert not kubeadm_drift(state)
    [decision] = decisions(state)
    assert "ConfigMap kube-system/coredns" in decision.what
    assert "delete configmap coredns" in decision.why
    assert [line.split() for line in decision.diff] == [
        ["-", "forward", ".", "/etc/resolv.conf", "{"],
        ["+", "forward", ".", "192.0.2.1", "{"],
    ]


def test_more_pods_of_coredns_are_named_and_left() -> None:
    state = site(DNS, _scaled)
    assert not kubeadm_drift(state)
    assert [item.what for item in decisions(state)] == [
        "Deployment kube-system/coredns: 5 pods instead of 2"
    ]


def _autoscaled(number: int, manager: str) -> Change:
    def change(item: dict[str, Any]) -> None:
        item["spec"]["replicas"] = number
        entry = {"manager": manager, "subresource": "scale", "operation": "Update"}
        item["metadata"].setdefault("managedFields", []).append(entry)

    return change


@pytest.mark.parametrize(
    "manager", ["kube-controller-manager", "cluster-proportional-autoscaler", "keda-operator"]
)
@pytest.mark.parametrize("number", [1, 5])
def test_an_autoscaler_decides_how_many_pods_there_are(number: int, manager: str) -> None:
    state = site(DNS, _autoscaled(number, manager))
    assert not kubeadm_drift(state)
    assert not decisions(state)


def test_who_scales_by_hand_is_no_autoscaler() -> None:
    [drift] = kubeadm_drift(site(DNS, _autoscaled(1, "kubectl")))
    assert drift.fields == (("spec.replicas", 1, 2),)


def test_a_cluster_as_kubeadm_made_it_has_no_decision() -> None:
    assert not decisions(site())
    assert not decisions(site(COREFILE))  # a missing one is made again
