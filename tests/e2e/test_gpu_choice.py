"""A machine with a GPU that is not the cluster's: nothing has it, after a boot as well."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Lab, fresh_lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
INVENTORY = "tests/e2e/inventories/one_gpu/lab.py"
ADDRESS = "0000:10:00.0"  # of the GPU that stays out


@pytest.fixture(scope="module")
def single() -> Iterator[Lab]:
    with fresh_lab("test-gpu-choice", "--single", "--no-deploy") as lab:
        yield lab


def gpus(lab: Lab) -> list[str]:
    """UUIDs that nvidia-smi lists."""
    lines = lab.ssh("node1", "nvidia-smi --query-gpu=uuid --format=csv,noheader").split()
    return [line for line in lines if line.startswith("GPU-")]


def allocatable(lab: Lab) -> str:
    nodes = json.loads(lab.kubectl("get", "nodes", "-o", "json"))
    return str(nodes["items"][0]["status"]["allocatable"]["nvidia.com/gpu"])


def test_one_gpu_is_the_cluster_s_and_the_other_is_left_alone(single: Lab) -> None:
    result = single.deploy(inventory=INVENTORY)
    assert result.code == 0, result.details
    assert f"node1: left alone: {ADDRESS}" in result.text
    assert "1 of 1 GPUs proven" in result.text
    [uuid] = gpus(single)
    devices = single.ssh("node1", "nvidia-ctk cdi list 2>/dev/null").split()
    gpu_names = [name for name in devices if name.startswith("nvidia.com/gpu=GPU-")]
    assert gpu_names == [f"nvidia.com/gpu={uuid}"]
    assert allocatable(single) == "1"
    assert single.deploy("--json", inventory=INVENTORY).changes == []


def test_it_stays_out_after_a_boot(single: Lab) -> None:
    before = gpus(single)
    single.reboot("node1")
    assert gpus(single) == before
    result = single.deploy(inventory=INVENTORY)
    assert result.code == 0, result.details
    assert "1 of 1 GPUs proven" in result.text
