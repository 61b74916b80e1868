"""Which pods try a node's free GPUs, and what they may."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import V1Pod

from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.verify import workload_pods
from gpuboot.verify.session import pod_name
from gpuboot.verify.workload_pods import NO_SCRIPT, Script
from tests.unit.evidence import node

SETTINGS = parse_settings({})


def pod_of(gpus: int, settings: Settings, sidecar: Script = NO_SCRIPT, **labels: str) -> Any:
    """The spec of the one pod for a node's free GPUs."""
    item = node("gpu1", gpus, labels={"kubernetes.io/hostname": "gpu1", **labels})
    parts = workload_pods.containers(item, {"nvidia.com/gpu": gpus}, settings)
    pod = workload_pods.gpu_pod(parts, item, settings, sidecar)
    V1Pod.model_validate(pod)
    return pod["spec"]


def test_a_pod_takes_the_free_gpus_and_no_privilege_and_ends_by_itself() -> None:
    settings = parse_settings({"runtime": {"mode": "runtimeclass"}, "verify": {"timeout_s": 300}})
    pod = pod_of(8, settings)
    limits = [item["resources"]["limits"] for item in pod["containers"]]
    assert limits == [{"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "7"}]
    for container in pod["containers"]:
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "CUDA_VISIBLE_DEVICES=$uuid /cuda-samples/vectorAdd" in container["command"][2]
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["activeDeadlineSeconds"] == 420
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu1"}
    assert "runtimeClassName" not in pod_of(1, SETTINGS)


def test_only_the_first_container_runs_something_beside() -> None:
    pod = pod_of(2, SETTINGS, Script("echo $1\n", ("hello",)))
    commands = [item["command"][2:] for item in pod["containers"]]
    assert commands[0][0].startswith("(\necho $1\n) &\n")
    assert (commands[0][1:], commands[1][1:]) == (["sh", "hello"], ["sh"])
    assert "echo $1" not in commands[1][0]


@pytest.mark.parametrize(
    ("data", "labels"),
    [
        ({"gpu_operator": {"time_slices": 4}}, {}),
        ({}, {"nvidia.com/gpu.replicas": "4"}),
        ({}, {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.strategy": "none"}),
    ],
)
def test_shared_gpus_and_gpus_divided_without_a_strategy_get_a_pod_each(
    data: dict[str, Any], labels: dict[str, str]
) -> None:
    item = node("gpu1", 2, labels=labels)
    parts = workload_pods.containers(item, {"nvidia.com/gpu": 2}, parse_settings(data))
    assert [(part.pod, part.count) for part in parts] == [
        ("vectoradd-gpu1-0", 1),
        ("vectoradd-gpu1-1", 1),
    ]
    assert all(part.isolated for part in parts)


def test_nodes_whose_long_names_differ_at_the_end_have_pods_of_their_own() -> None:
    nodes = [f"gke-training-production-europe-west4-pool-a3-{number}.c" for number in range(2)]
    names = {pod_name("vectoradd", node, 0) for node in nodes}
    assert len(names) == 2
    assert all("." not in name for name in names)


def test_a_taint_that_the_pods_do_not_tolerate_keeps_them_away() -> None:
    tainted = node("gpu1", 2, taints=("team=ml:NoSchedule",))
    plan = workload_pods.plan_pods(("gpu1",), {"gpu1": tainted}, ())
    assert plan.skipped_nodes == {"gpu1": "the node has the taint team=ml:NoSchedule"}
    assert plan.total == 0


def test_each_free_mig_device_gets_a_pod_that_asks_for_it_by_name() -> None:
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
    mixed = node("gpu1", 1, mig={small: 4, large: 1})
    devices = {small: 1, large: 1}
    holder_pod = Pod(namespace="ml", name="infer-0", node="gpu1", devices=devices)
    planned = workload_pods.plan_pods(("gpu1",), {"gpu1": mixed}, (holder_pod,))
    assert planned.pods == {"gpu1": {"nvidia.com/gpu": 1, small: 3}}
    assert planned.total == 4
    parts = workload_pods.containers(mixed, planned.pods["gpu1"], SETTINGS)
    assert [(part.resource, part.count) for part in parts] == [
        ("nvidia.com/gpu", 1),
        (small, 1),
        (small, 2),
    ]
    pod = workload_pods.gpu_pod(parts, mixed, SETTINGS)["spec"]
    assert pod["containers"][1]["resources"] == {"limits": {small: "1"}}


@pytest.mark.parametrize(
    ("listing", "code", "exit_code", "computed"),
    [
        ("GPU 0: H100 (UUID: GPU-a)", 0, 0, True),
        ("GPU 0: H100 (UUID: GPU-a)\nWARNING: infoROM is corrupted at gpu 0:10:00.0", 14, 0, True),
        ("Failed to initialize NVML: Unknown Error", 255, 255, False),
        ("No devices found.", 0, 1, False),
    ],
)
def test_a_pod_computes_on_the_gpus_that_nvidia_smi_lists(
    tmp_path: Path, listing: str, code: int, exit_code: int, computed: bool
) -> None:
    for name, text in (
        ("nvidia-smi", f"echo '{listing}'\nexit {code}\n"),
        ("vectorAdd", "echo Test PASSED\n"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}")
        (tmp_path / name).chmod(0o755)
    script = workload_pods._SCRIPT.replace("/cuda-samples/", f"{tmp_path}/") + "wait\n"
    result = subprocess.run(
        ["sh", "-c", script],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert result.returncode == exit_code
    assert ("GPU-a: Test PASSED" in result.stdout) is computed
