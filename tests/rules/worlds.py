"""What happens to GPUs and pods, and the values of the recording rules that come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuboot.monitoring import rules
from tests.rules.model import G0, G1, HOLDER, dcgm, series, up, values

_TEMP = "DCGM_FI_DEV_GPU_TEMP"
_ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_WATTS = "DCGM_FI_DEV_POWER_USAGE"
_XID = "DCGM_EXP_XID_ERRORS_TOTAL"
_SLICES = [{"GPU_I_ID": str(number), "GPU_I_PROFILE": "3g.40gb"} for number in (1, 2)]
_SLOT = {**G0, "pci_bus_id": "00000000:10:00.0"}
H100 = "NVIDIA H100 80GB HBM3"
# labels of the per-GPU records of a GPU that pod ml/train-0 holds
_HELD_GPU = {**G0, **HOLDER, "modelName": H100}


@dataclass(frozen=True)
class World:
    """Series, a sample every `step` seconds, and what expressions give at a minute."""

    description: str
    series: Mapping[str, str]
    minute: float
    gives: Mapping[str, Sequence[tuple[Mapping[str, str], float]]]
    step: int = 30


def _mig(metric: str, instance: int, value: float, **extra: str) -> dict[str, str]:
    labels = {"GPU_I_ID": str(instance), "GPU_I_PROFILE": "1g.10gb", **extra}
    return {dcgm(metric, G1, **labels): f"{value}x300"}


def requests(
    pod: str,
    count: int,
    phase: str,
    resource: str = "nvidia_com_gpu",
    node: str = "gpu1",
    values: str = "x300",
) -> dict[str, str]:
    pod_labels = {"namespace": "ml", "pod": pod}
    return {
        series("kube_pod_container_resource_requests", **pod_labels, container="main", node=node,
               resource=resource, unit="integer"): f"{count}{values}",
        **{series("kube_pod_status_phase", **pod_labels, phase=name):
           f"{int(name == phase)}{values}"
           for name in ("Pending", "Running", "Succeeded", "Failed", "Unknown")},
    }  # fmt: skip


def _nodes(kind: str, count: int, node: str = "gpu1", instance: str = "a") -> dict[str, str]:
    return {
        series(f"kube_node_status_{kind}", node=node, resource="nvidia_com_gpu", unit="integer",
               instance=instance): f"{count}x300"
    }  # fmt: skip


WORLDS = [
    World(
        "GPUs: one that a pod holds, and that is seen twice; one that is cut into MIG instances",
        {
            dcgm(_TEMP): "40x300",
            **_mig(_TEMP, 1, 41), **_mig(_TEMP, 2, 41),
            dcgm(_TEMP, G0, job="dcgm-exporter"): "40x300",
            up(): "1x300",
            dcgm(_ENGINE, G0, **HOLDER): values((0.2, 20), (0.8, 40)),
            **_mig(_ENGINE, 1, 0.4, namespace="ml", pod="a"), **_mig(_ENGINE, 2, 0),
            dcgm("DCGM_FI_PROF_SM_ACTIVE", G0, **HOLDER): "0.7x300",
            dcgm("DCGM_FI_PROF_DRAM_ACTIVE", G0, **HOLDER): "0.5x300",
            dcgm("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", G0, **HOLDER): "0.3x300",
            dcgm("DCGM_FI_DEV_FB_USED", G0, **HOLDER): "60000x300",
            dcgm("DCGM_FI_DEV_FB_FREE", G0, **HOLDER): "20000x300",
            dcgm("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS"): values((0, 60, 15e9)),
            dcgm("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"): values((0, 60, 6e9)),
            dcgm("DCGM_EXP_XID_ERRORS_TOTAL", G0, xid="31", **HOLDER): values((2, 29), (3, 60)),
            dcgm("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", G0, **HOLDER): "7x300",
        },
        30,
        {
            "node:gpu_expected:count": [({"node": "gpu1"}, 2), ({"node": "gpu2"}, 4)],
            "node:gpu_visible:count": [({"node": "gpu1"}, 2)],
            'gpu:engine_active:avg5m{UUID="GPU-0"}': [(_HELD_GPU, 0.8)],
            "gpu:sm_active:avg5m": [(_HELD_GPU, 0.7)],
            "gpu:dram_active:avg5m": [(_HELD_GPU, 0.5)],
            "gpu:tensor_active:avg5m": [(_HELD_GPU, 0.3)],
            "gpu:memory_used:ratio": [(_HELD_GPU, 0.75)],
            "round(gpu:throttle:ratio5m, 0.001)": [
                ({**G0, "reason": "sw_power_cap"}, 0.25), ({**G0, "reason": "hw_thermal"}, 0.1)],
            "gpu:xid_errors:total": [({**G0, "xid": "31"}, 3)],
            "gpu:xid_errors:new2m": [({**G0, "xid": "31"}, 1)],
            "gpu:visible:info": [(G0, 1), (G1, 1)],
            "gpu:ecc_sbe:total": [(G0, 7)],
            "node:engine_active:avg": [({"node": "gpu1"}, 0.5)],  # 0.8, and 0.2 = (0.4 + 0) / 2
            "cluster:engine_active:avg": [({}, 0.5)],
            # 0.8 and 0.4
            "round(namespace:engine_active:avg, 0.001)": [({"namespace": "ml"}, 0.6)],
            "namespace_pod:engine_active:avg2m": [
                ({"namespace": "ml", "pod": "train-0"}, 0.8),
                ({"namespace": "ml", "pod": "a"}, 0.4)],
            "namespace_pod:sm_active:avg2m": [({"namespace": "ml", "pod": "train-0"}, 0.7)],
        },
    ),
    World(
        "XIDs of MIG instances keep their instance's labels",
        {
            dcgm(_XID, xid="31", **_SLICES[0]): "2x200",
            dcgm(_XID, xid="31", **_SLICES[1], **HOLDER): values((None, 29), (1, 60)),
            dcgm("DCGM_FI_DEV_SM_CLOCK", **_SLICES[0]): "1410x200",
        },
        30,
        {
            "gpu:xid_errors:total": [
                ({**G0, **_SLICES[0], "xid": "31"}, 2), ({**G0, **_SLICES[1], "xid": "31"}, 1)],
            "gpu:xid_errors:new2m": [({**G0, **_SLICES[1], "xid": "31"}, 1)],
            "gpu:xid_incident:active": [(G0, 1)],
            "gpu:free_of_complaints:info": [(G0, 1)],
            "gpu:xid_unrepaired:timestamp": [],
        },
    ),
    World(
        "a fatal XID on a GPU of which the driver complains; a killed job on another one",
        {
            dcgm(_XID, xid="119"): values((None, 20), (1, 60)),
            dcgm(_XID, G1, xid="45"): values((None, 29), (1, 60)),
            **{dcgm("DCGM_FI_DEV_SM_CLOCK", gpu): "1980x200" for gpu in (G0, G1)},
            dcgm("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"): values((0, 20), (1, 60)),
            dcgm("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", G1): "0x200",
        },
        30,
        {
            # counted at 20 min, and new for 2 min
            "gpu:xid_unrepaired:timestamp": [({**G0, "xid": "119"}, 22 * 60 - 30)],
            "gpu:free_of_complaints:info": [(G1, 1)],
            "gpu:recovery_action:max": [(G0, 1), (G1, 0)],
            "gpu:xid_incident:active": [(G0, 0), (G1, 0)],
        },
    ),
    World(
        "PCIe: a gen4 link with 8 lanes that has had 16, and rests now and then",
        {
            dcgm("DCGM_FI_DEV_PCIE_LINK_WIDTH"): values((16, 20), (8, 60)),
            dcgm("DCGM_FI_DEV_PCIE_LINK_GEN"): " ".join(["4", "1"] * 100),
        },
        30,
        {
            "gpu:pcie_lanes:max5m": [(_SLOT, 8)],
            "gpu:pcie_lanes:max1h": [(_SLOT, 16)],
            "gpu:pcie_gen:max5m": [(_SLOT, 4)],
            "gpu:pcie_gen:max1h": [(_SLOT, 4)],
            "gpu:pcie_replays:allowed": [(G0, 8)],  # ceil(0.96 * 8)
        },
    ),
    World(
        "an hour: idle and held, busy once, too few samples",
        {
            dcgm(_ENGINE, G0, **HOLDER): "0x600",
            dcgm(_ENGINE, {**G0, "UUID": "GPU-2"}, **HOLDER): "0x200 0.5 0x399",
            dcgm(_ENGINE, {**G0, "UUID": "GPU-3"}, **HOLDER): "_x150 0x450",
        },
        85,
        {
            "gpu:engine_active:max1h": [
                ({**_HELD_GPU}, 0), ({**_HELD_GPU, "UUID": "GPU-2"}, 0.5)],
            "namespace:gpu_idle_held:count": [({"namespace": "ml"}, 1)],
        },
        step=15,
    ),
    World(
        "a GeForce: no profiling fields, GPU_UTIL instead; and no kube-state-metrics",
        {dcgm("DCGM_FI_DEV_GPU_UTIL", G0, **HOLDER): "40x300"},
        30,
        {
            "gpu:engine_active:avg5m": [(_HELD_GPU, 0.4)],
            "namespace_pod:engine_active:avg2m": [({"namespace": "ml", "pod": "train-0"}, 0.4)],
            "gpu:sm_active:avg5m": [],
            "gpu:tensor_active:avg5m": [],
            "namespace_pod:gpu_requested:sum": [],
            "node:gpu_requested:sum": [],
            "cluster:gpu_allocation:ratio": [],
            "cluster:gpu_capacity:sum": [],
        },
    ),
    World(
        "somebody profiles a GPU: its fields pause, and GPU_UTIL is no answer to that",
        {
            dcgm("DCGM_FI_DEV_GPU_UTIL", G0, **HOLDER): "100x300",
            dcgm(_ENGINE, G0, **HOLDER): values((0.3, 20), (None, 30)),
        },
        40,
        {"gpu:engine_active:avg5m": [], "node:engine_active:avg": []},
    ),
    World(
        "the GPU goes to another pod: it is one GPU, and the old pod is gone at once",
        {
            dcgm(_ENGINE, G0, **HOLDER): values((1, 20), (None, 30)),
            dcgm(_ENGINE, G0, **{**HOLDER, "pod": "next"}): values((None, 20), (0.5, 30)),
        },
        22,
        {
            "gpu:engine_active:avg5m": [({**_HELD_GPU, "pod": "next"}, 0.5)],
            "node:engine_active:avg": [({"node": "gpu1"}, 0.5)],
        },
    ),
    World(
        "memory that two pods share by time: each one's part of the whole",
        {
            dcgm("DCGM_FI_DEV_FB_USED", G0, namespace="a", pod="x"): "10000x300",
            dcgm("DCGM_FI_DEV_FB_USED", G0, namespace="b", pod="y"): "30000x300",
            dcgm("DCGM_FI_DEV_FB_USED"): "40000x300",
            dcgm("DCGM_FI_DEV_FB_FREE", G0, namespace="a", pod="x"): "40000x300",
            dcgm("DCGM_FI_DEV_FB_FREE", G0, namespace="b", pod="y"): "40000x300",
        },
        30,
        {
            'gpu:memory_used:ratio{pod="x"}': [
                ({**G0, "modelName": H100, "namespace": "a", "pod": "x"}, 0.125)],
            'gpu:memory_used:ratio{pod=""}': [({**G0, "modelName": H100}, 0.5)],
        },
    ),
    World(
        "watts: two pods share a GPU by time, one has an instance of another, one is free",
        {
            dcgm(_WATTS, G0, namespace="a", pod="x"): "600x300",
            dcgm(_WATTS, G0, namespace="b", pod="y"): "600x300",
            **_mig(_WATTS, 1, 400, namespace="a", pod="z"), **_mig(_WATTS, 2, 400),
            dcgm(_WATTS, {"node": "gpu2", "UUID": "GPU-9", "gpu": "0"}): "100x300",
        },
        30,
        {
            "node:gpu_power:sum": [({"node": "gpu1"}, 1000), ({"node": "gpu2"}, 100)],
            "cluster:gpu_power:sum": [({}, 1100)],
            "namespace:gpu_power:sum": [({"namespace": "a"}, 500), ({"namespace": "b"}, 300)],
        },
    ),
    World(
        "allocation: completed pods hold nothing, and a second kube-state-metrics adds nothing",
        {
            **_nodes("capacity", 8), **_nodes("capacity", 8, instance="b"),
            **_nodes("allocatable", 7), **_nodes("allocatable", 7, instance="b"),
            **_nodes("capacity", 4, "gpu2"), **_nodes("allocatable", 4, "gpu2"),
            **requests("runs", 4, "Running"),
            **requests("done", 4, "Succeeded"),
            **requests("failed", 2, "Failed"),
            **requests("waits", 8, "Pending", node=""),
            **requests("mig", 1, "Running", "nvidia_com_mig_1g_10gb"),
            **requests("cpu", 16, "Running", "cpu"),
        },
        30,
        {
            "node:gpu_capacity:sum": [({"node": "gpu1"}, 8), ({"node": "gpu2"}, 4)],
            "node:gpu_allocatable:sum": [({"node": "gpu1"}, 7), ({"node": "gpu2"}, 4)],
            "namespace_pod:gpu_requested:sum": [
                ({"namespace": "ml", "pod": "runs", "node": "gpu1",
                  "resource": "nvidia_com_gpu"}, 4),
                ({"namespace": "ml", "pod": "mig", "node": "gpu1",
                  "resource": "nvidia_com_mig_1g_10gb"}, 1)],
            "node:gpu_requested:sum": [({"node": "gpu1"}, 5), ({"node": "gpu2"}, 0)],
            "namespace:gpu_requested:sum": [({"namespace": "ml"}, 5)],
            "cluster:gpu_capacity:sum": [({}, 12)],
            "cluster:gpu_allocatable:sum": [({}, 11)],
            "cluster:gpu_requested:sum": [({}, 5)],
            "cluster:gpu_allocation:ratio": [({}, 5 / 11)],
        },
    ),
    World(
        "nothing runs: zero, and not nothing",
        {**_nodes("capacity", 8), **_nodes("allocatable", 8)},
        30,
        {"cluster:gpu_requested:sum": [({}, 0)], "cluster:gpu_allocation:ratio": [({}, 0)]},
    ),
    World(
        "prices: by model, and all others",
        {dcgm(_TEMP): "40x300", dcgm(_TEMP, G1, modelName="NVIDIA L4"): "40x300"},
        30,
        {"gpu:price_per_hour": [({"modelName": H100}, 2.5), ({"modelName": "NVIDIA L4"}, 1)]},
    ),
    World(
        "the rules tell which ones they are",
        {},
        1,
        {f"count({rules.RULES_INFO_METRIC})": [({}, 1)]},
    ),
]  # fmt: skip
