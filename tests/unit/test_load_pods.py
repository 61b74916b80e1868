"""Which GPUs a load takes, and what its pods may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubernetes.client import V1Pod

from gpuboot.cluster import node_gate
from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.cluster.repair_keys import TAINT_KEY
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.verify.load import load_pods
from gpuboot.verify.load.load_pods import Kind, LoadRequest
from tests.unit.evidence import node

GPU1, GPU2 = node("gpu1", 2), node("gpu2", 4)


def planned(
    *nodes: Node,
    held_pods: tuple[Pod, ...] = (),
    settings: Settings | None = None,
    **fields: Any,
) -> load_pods.Plan:
    request = LoadRequest(**{"kind": "compute", "seconds": 120, **fields})
    by_name = {node.name: node for node in nodes}
    return load_pods.plan(by_name, by_name, held_pods, settings or Settings(), request)


def holding(name: str, gpus: int) -> Pod:
    return Pod(namespace="ml", name="train-0", node=name, devices={"nvidia.com/gpu": gpus})


def test_free_gpus_are_taken_and_held_ones_left() -> None:
    plan = planned(GPU1, GPU2, held_pods=(holding("gpu1", 2), holding("gpu2", 1)))
    assert plan.gpus == {"gpu2": 3}
    assert plan.left == {"gpu1": "its GPUs are held by ml/train-0"}


def test_no_more_than_are_wanted() -> None:
    assert planned(GPU1, GPU2, gpus=1).gpus == {"gpu1": 1, "gpu2": 1}
    assert planned(GPU1, gpus=5).gpus == {"gpu1": 2}


def test_for_one_gpu_all_free_ones_of_its_node_are_held() -> None:
    assert planned(GPU2, held_pods=(holding("gpu2", 1),), uuid="GPU-1").gpus == {"gpu2": 3}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"ready": False}, "the node is not Ready"),
        ({"cordoned": True}, "the node is cordoned"),
        ({"gpus": 0}, "it offers no GPU"),
        ({"mig": {"nvidia.com/mig-1g.10gb": 7}}, "MIG is on: a load is for whole GPUs"),
        (
            {"labels": {"nvidia.com/gpu.replicas": "4"}},
            "its GPUs are shared by several pods: who else is on one is not known",
        ),
    ],
)
def test_why_a_node_is_left(changed: dict[str, Any], reason: str) -> None:
    plan = planned(node("gpu1", **{"gpus": 2, **changed}))
    assert plan.gpus == {}
    assert plan.left == {"gpu1": reason}


@pytest.mark.parametrize("key", [node_gate.KEY, TAINT_KEY])
def test_a_node_that_is_gated_or_quarantined_is_left(key: str) -> None:
    plan = planned(replace(GPU1, taints=(f"{key}=x:NoSchedule",)))
    assert plan.left == {"gpu1": f"the node has the taint {key}=x:NoSchedule"}


def make_pod(settings: Settings | None = None, kind: Kind = "memory", **fields: Any) -> Any:
    request = LoadRequest(kind=kind, seconds=300, **fields)
    item = node("gpu1", 2, labels={"kubernetes.io/hostname": "gpu1"})
    pod = load_pods.pod(item, 2, request, 1_800_000_000, settings or Settings())
    V1Pod.model_validate(pod)
    return pod


def test_a_pod_holds_its_gpus_has_no_privilege_and_ends_itself() -> None:
    pod = make_pod()
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["spec"]["activeDeadlineSeconds"] == load_pods.START_S + 300 + load_pods.GRACE_S
    assert pod["metadata"]["labels"] == load_pods.LABELS
    assert "nodeName" not in pod["spec"], "the scheduler knows who else wants a GPU"
    assert node_gate.KEY not in {toleration["key"] for toleration in pod["spec"]["tolerations"]}
    assert container["command"][4:] == ["300", "1800000000", "1005", ""]
    assert make_pod(uuid="GPU-7")["spec"]["containers"][0]["command"][7] == "GPU-7"


def test_its_image() -> None:
    (container,) = make_pod(Settings())["spec"]["containers"]
    assert container["image"] == Settings().verify.deep.dcgm_image
    modes = parse_settings({"runtime": {"mode": "runtimeclass"}})
    assert make_pod(modes)["spec"]["runtimeClassName"] == "nvidia"


def test_each_kind_has_its_field() -> None:
    assert set(load_pods.KINDS) == set(load_pods.FIELDS)
