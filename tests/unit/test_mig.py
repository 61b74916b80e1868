"""MIG layouts that somebody made by hand: who is told, and what waits for whole GPUs then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster import objects, readiness
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import lock
from gpuboot.hosts import mig
from gpuboot.hosts.gpu_sharing import Offer
from gpuboot.hosts.node_state import parse
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from tests.unit.test_node_state import ANSWER

NODE = Node("h1", "gpu1", "10.0.0.2", "worker", 1, False)
# what nvidia-smi mig -cgi makes: /proc/driver/nvidia/capabilities/gpu0/mig/gi7 (NVIDIA's MIG guide)
PARTITIONED = replace(parse([*ANSWER, "mig_instances\t7"]), cluster_ca="")
JOINED = replace(PARTITIONED, cluster_ca="abc")
A100 = "NVIDIA-A100-SXM4-40GB"
UNPARTITIONED = replace(PARTITIONED, mig_instances=0)
ONE_GPU = Offer({"nvidia.com/gpu": 1})


def test_instances_that_the_operator_would_remove_are_told() -> None:
    """gpu-operator v26.7.0, controllers/nodelabeling_controller.go:306-314."""
    [line] = mig.warnings([NODE], {"h1": PARTITIONED}, parse_settings({}))
    assert "7 MIG instances" in line
    assert "gpu_operator.mig_manager = False" in line


@pytest.mark.parametrize(
    ("state", "data"),
    [
        (UNPARTITIONED, {}),
        (JOINED, {}),
        (PARTITIONED, {"gpu_operator": {"mig_manager": False}}),
        (PARTITIONED, {"gpu_operator": {"enabled": False}, "exporter": {"kind": "chart"}}),
    ],
)
def test_nothing_is_told_where_nothing_is_removed(state: Any, data: dict[str, Any]) -> None:
    assert mig.warnings([NODE], {"h1": state}, parse_settings(data)) == []


def test_the_mig_manager_can_be_left_out() -> None:
    configured = parse_settings({"gpu_operator": {"mig_manager": False}})
    assert operator_values(configured, lock(configured))["migManager"] == {"enabled": False}
    assert operator_values(parse_settings({}), lock(parse_settings({})))["migManager"] == {
        "enabled": True
    }


@pytest.mark.parametrize(
    ("labels", "allocatable", "left_out"),
    [
        # single: GFD's product of an A100 (k8s-device-plugin v0.20.0, mig-strategy_test.go:262)
        (
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
            {"nvidia.com/gpu": "7"},
            True,
        ),
        ({}, {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7"}, True),  # mixed
        ({"nvidia.com/mig.config": "all-1g.5gb"}, {}, True),
        ({"nvidia.com/gpu.product": A100}, {"nvidia.com/gpu": "0"}, False),
        ({}, {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "0"}, False),
    ],
)
def test_divided_gpus_are_not_waited_for(
    labels: dict[str, str], allocatable: dict[str, str], left_out: bool
) -> None:
    node = objects.Node(
        name="gpu1",
        address="10.0.0.2",
        versions={"kubelet": "v1.36.6"},
        ready=True,
        message="",
        allocatable=allocatable,
        labels=labels,
        taints=(),
    )
    look = readiness.gpus_allocatable(ClusterState(nodes=(node,)), {"gpu1": ONE_GPU})
    assert look.complete is left_out
