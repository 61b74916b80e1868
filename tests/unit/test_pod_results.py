"""Kubernetes' JSON and the exporters' text, read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from gpuboot.cluster.objects import parse_node
from gpuboot.cluster.pods import holders, parse_pod
from gpuboot.verify.collector import parse_scrape
from gpuboot.verify.pod_results import parse_vectoradd_log, pod_issue
from gpuboot.verify.prometheus import gpu_readings, parse_exposition
from tests.unit import recordings
from tests.unit.evidence import uuid

LABELS = (
    f'gpu="0",UUID="{uuid("gpu1", 0)}",pci_bus_id="00000000:10:00.0",device="nvidia0",'
    'modelName="NVIDIA H100 80GB HBM3",hostname="gpu1",container="main",namespace="ml",pod="t-0"'
)
PAGE = f"""# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (°C)
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{{{LABELS}}} 34
DCGM_FI_DEV_MEMORY_TEMP{{{LABELS}}} 9223372036854775794
DCGM_FI_DEV_POWER_USAGE{{{LABELS}}} 71.423000 1795270540000
DCGM_FI_DEV_FB_FREE{{{LABELS}}} 80941
DCGM_FI_DEV_FB_USED{{{LABELS}}} 4
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{LABELS}}} 5.3e+06
go_goroutines 12
"""


def pod(**status: Any) -> dict[str, Any]:
    meta = {"namespace": "ml", "name": "train-0"}
    limits = {"limits": {"nvidia.com/gpu": "2"}}
    spec = {"nodeName": "gpu1", "containers": [{"name": "m", "resources": limits}, {"name": "s"}]}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running"} | status}


def test_a_node() -> None:
    item = {
        "metadata": {"name": "gpu1", "labels": None, "annotations": {"a": "b"}},
        "spec": {
            "unschedulable": True,
            "podCIDRs": ["10.244.1.0/24", "fd00::/64"],
            "taints": [{"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"}],
        },
        "status": {
            "allocatable": {"cpu": "8", "nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "7"},
            "conditions": [{"type": "Ready", "status": "True", "message": "posting"}],
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"type": "InternalIP", "address": "fd00::2"},
                {"type": "Hostname", "address": "gpu1"},
            ],
            "nodeInfo": {
                "containerRuntimeVersion": "containerd://2.4.2",
                "kubeletVersion": "v1.36.3",
            },
        },
    }
    node = parse_node(item)
    assert (node.ready, node.cordoned, node.gpus, node.mig) == (
        True,
        True,
        2,
        {"nvidia.com/mig-1g.10gb": 7},
    )
    assert (node.versions["runtime"], node.kubelet) == ("containerd://2.4.2", "1.36.3")
    assert (node.address, node.pod_cidrs) == ("10.0.0.2 fd00::2", ("10.244.1.0/24", "fd00::/64"))
    assert (node.taints, node.message) == (("node.kubernetes.io/not-ready:NoSchedule",), "posting")
    assert (node.labels, node.annotations) == ({}, {"a": "b"})


def test_pods_that_hold_gpus() -> None:
    ended_pod, waiting, plain = pod(phase="Succeeded"), pod(), pod()
    del waiting["spec"]["nodeName"]
    plain["spec"]["containers"] = [{"name": "m"}]
    (gpu_pod,) = holders(map(parse_pod, [pod(), ended_pod, waiting, plain]))
    assert (gpu_pod.key, gpu_pod.node, gpu_pod.gpus) == ("ml/train-0", "gpu1", 2)


def devices(spec: dict[str, Any]) -> Mapping[str, int]:
    meta = {"namespace": "ml", "name": "train"}
    return parse_pod({"metadata": meta, "spec": spec}).devices


def test_gpus_are_counted_as_the_scheduler_does() -> None:
    """The sum of the containers, or one init container's where that is more."""
    one_gpu, four = (
        {"name": "a", "resources": {"limits": {"nvidia.com/gpu": count}}} for count in ("1", "4")
    )
    slices = {"name": "b", "resources": {"limits": {"nvidia.com/mig-1g.10gb": 2, "cpu": "4"}}}
    spec = {"containers": [one_gpu, slices, {"name": "side"}], "initContainers": [one_gpu]}
    assert devices(spec) == {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 2}
    assert devices({**spec, "initContainers": [four]})["nvidia.com/gpu"] == 4
    assert devices({"containers": [{"name": "m", "resources": {"limits": None}}]}) == {}
    memory = {"name": "m", "resources": {"limits": {"nvidia.com/gpumem": "3k"}}}
    assert devices({"containers": [memory]}) == {"nvidia.com/gpumem": 3000}


def test_pods_hold_gpus_until_their_last_container_has_ended() -> None:
    pods = [parse_pod(pod(phase=phase)) for phase in ("Pending", "Running", "Succeeded", "Failed")]
    assert [item.phase for item in holders(pods)] == ["Pending", "Running"]


def taint_of(*taints: dict[str, str], tolerated: tuple[str, ...] = ()) -> str:
    item = {"metadata": {"name": "gpu1"}, "spec": {"taints": taints}}
    return parse_node(item).untolerated_taint(tolerated)


def test_taints() -> None:
    gpu = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    team = {"key": "team", "value": "ml", "effect": "NoExecute"}
    assert taint_of(gpu, tolerated=("nvidia.com/gpu",)) == ""
    assert taint_of(gpu, team, tolerated=("nvidia.com/gpu",)) == "team=ml:NoExecute"
    assert taint_of({"key": "x", "effect": "PreferNoSchedule"}) == ""


def test_a_log() -> None:
    log = f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid('gpu1', 0)})\n…\nTest PASSED\nDone\n"
    assert parse_vectoradd_log(log) == ((uuid("gpu1", 0),), True)
    assert parse_vectoradd_log("Failed to allocate device vector A") == ((), False)


@pytest.mark.parametrize(
    ("status", "text", "failed"),
    [
        ({}, "", False),
        ({"phase": "Failed", "message": "Allocate failed", "reason": "Unexpected"}, "Alloc", True),
        (
            {
                "phase": "Failed",
                "containerStatuses": [
                    {"name": "m", "state": {"terminated": {"exitCode": 9, "reason": "Error"}}}
                ],
            },
            "exit code 9: Error",
            True,
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]},
            "0/3 nodes",
            False,
        ),
        (
            {
                "containerStatuses": [
                    {"name": "m", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                ]
            },
            "ImagePullBackOff",
            False,
        ),
        (
            {
                "containerStatuses": [
                    {"name": "m", "state": {"waiting": {"reason": "RunContainerError"}}}
                ]
            },
            "RunContainerError",
            True,
        ),
        (
            {
                "containerStatuses": [
                    {"name": "m", "state": {"waiting": {"reason": "ContainerCreating"}}}
                ]
            },
            "",
            False,
        ),
    ],
)
def test_why_a_pod_does_not_run(status: dict[str, Any], text: str, failed: bool) -> None:
    issue = pod_issue(parse_pod(pod(**status)))
    assert issue.error.startswith(text)
    assert bool(issue.error) == bool(text)
    assert issue.failed == failed


@pytest.mark.parametrize(
    ("reason", "withdrawn"),
    [
        ("Evicted", True), ("Preempting", True), ("Terminated", True), ("NodeShutdown", True),
        ("OutOfnvidia.com/gpu", True), ("OutOfcpu", True), ("NodeAffinity", True),
        ("UnexpectedAdmissionError", False), ("DeadlineExceeded", False), ("", False),
    ],
)  # fmt: skip
def test_what_ended_a_pod_for_reasons_of_its_node(reason: str, withdrawn: bool) -> None:
    """Its containers end with 137 then, which was all that was told."""
    killed = {"name": "m", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    status = {"phase": "Failed", "reason": reason, "message": "low on resource: memory"}
    issue = pod_issue(parse_pod(pod(**status, containerStatuses=[killed])))
    assert (issue.failed, issue.withdrawn) == (True, withdrawn)
    assert issue.error == (
        f"{reason}: low on resource: memory" if withdrawn else "exit code 137: Error"
    )


def test_an_exporter_s_page() -> None:
    (reading,) = gpu_readings(parse_exposition(PAGE), "gpu1")
    assert (reading.uuid, reading.node, reading.pod) == (uuid("gpu1", 0), "gpu1", "ml/t-0")
    assert (reading.temperature, reading.power, reading.memory) == (34, 71.423, 80945)
    assert reading.energy == 5300000


def test_dcgm_s_blank_is_no_value() -> None:
    blank_line = f"DCGM_FI_DEV_GPU_TEMP{{{LABELS}}} 9223372036854775794"
    assert gpu_readings(parse_exposition(blank_line), "gpu1")[0].temperature is None


@pytest.mark.parametrize(
    ("number", "is_blank"),
    [
        (0x7FFFFFF0, True), (0x7FFFFFF2, True), (0x7FFFFFEF, False), (0x80000000, False),
        (140737488355328.0, True), (0x7FFFFFFFFFFFFFF2, True), (math.nan, True), (0, False),
    ],
)  # fmt: skip
def test_dcgm_s_blanks_of_every_kind_are_no_values(number: float, is_blank: bool) -> None:
    """32-bit ones were a GPU of two gigawatts, and two thousand million memory errors."""
    power, errors = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
    page = f'{power}{{UUID="GPU-1"}} {number}\n{errors}{{UUID="GPU-1"}} {number}\n'
    scrape = parse_scrape("gpu1", "exporter", page)
    assert (scrape.readings[0].power is None, scrape.health == ()) == (is_blank, is_blank)


def test_labels_with_escapes() -> None:
    (sample,) = parse_exposition('m{a="x\\"y,}",b="l\\nm"} 1')
    assert sample.labels == {"a": 'x"y,}', "b": "l\nm"}


def test_text_that_is_no_metrics_page_is_refused() -> None:
    with pytest.raises(ValueError, match="no exposition line"):
        list(parse_exposition("<html><body>503</body></html>"))


def test_a_pod_on_a_mig_device_holds_that_and_not_the_gpu_that_it_sees() -> None:
    """`nvidia-smi -L` in a container lists the GPU, and below it the MIG device that was given."""
    log = "\n".join([recordings.H200_LIST[0], f"  {recordings.H200_LIST[4]}", "Test PASSED"])
    assert parse_vectoradd_log(log) == (
        ("MIG-00000003-0000-0000-0000-000000000003",),
        True,
    )


def test_claims_are_told_by_resource() -> None:
    item = pod()
    item["spec"]["containers"] = [
        {"name": "a", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "2", "memory": "1Gi"}}},
        {
            "name": "b",
            "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1", "nvidia.com/gpu": "1"}},
        },
    ]
    (gpu_pod,) = holders([parse_pod(item)])
    assert (gpu_pod.gpus, gpu_pod.mig) == (1, {"nvidia.com/mig-1g.10gb": 3})
