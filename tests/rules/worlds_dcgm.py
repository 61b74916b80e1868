"""What DCGM, its exporters and pods do that public reports tell of, and records of it."""

from __future__ import annotations

from tests.rules.model import G0, G1, HOLDER, dcgm, series
from tests.rules.worlds import H100, World, requests

_ENGINE, _SM = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"
_UTIL, _WATTS = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"
_INSTANCE = {"GPU_I_ID": "1", "GPU_I_PROFILE": "3g.40gb"}


def _init_requests(pod: str, count: int) -> dict[str, str]:
    return {
        series("kube_pod_init_container_resource_requests", namespace="ml", pod=pod,
               container="init", node="gpu1", resource="nvidia_com_gpu", unit="integer"):
        f"{count}x300"
    }  # fmt: skip


WORLDS = [
    World(
        "profiling stays at 0 while kernels run (NVIDIA/DCGM issue 303): not idle, but unknown",
        {
            dcgm(_UTIL, G0, **HOLDER): "99x300",
            dcgm(_ENGINE, G0, **HOLDER): "0x300",
            dcgm(_SM, G0, **HOLDER): "0x300",
            dcgm(_UTIL, G1): "1x300",
            dcgm(_ENGINE, G1): "0x300",
        },
        30,
        {
            "gpu:engine_active:avg5m": [({**G1, "modelName": H100}, 0)],
            "gpu:sm_active:avg5m": [],
            "namespace_pod:engine_active:avg2m": [],
            "namespace_pod:sm_active:avg2m": [],
        },
    ),
    World(
        "percentages of millions (NVIDIA/DCGM issue 199) are unknown; ratios end at 1 (issue 152)",
        {
            dcgm(_UTIL, G0): "30x55 808334905 30x100",
            dcgm(_UTIL, G1): "30x300",
            dcgm(_SM, G1, **_INSTANCE, **HOLDER): "1.4x300",
        },
        30,
        {
            "gpu:engine_active:avg5m": [({**G1, "modelName": H100}, 0.3)],
            "node:engine_active:avg": [({"node": "gpu1"}, 0.3)],
            "namespace_pod:sm_active:avg2m": [({"namespace": "ml", "pod": "train-0"}, 1)],
        },
    ),
    World(
        "watts of a GPU that a second exporter shows as well, which names no pods",
        {
            dcgm(_WATTS, G0, **HOLDER): "600x300",
            dcgm(_WATTS, G0, job="host-dcgm-exporter"): "600x300",
        },
        30,
        {
            "node:gpu_power:sum": [({"node": "gpu1"}, 600)],
            "namespace:gpu_power:sum": [({"namespace": "ml"}, 600)],
        },
    ),
    World(
        "allocation: init containers hold what they ask for beyond the others, sidecars as well",
        {
            **requests("both", 4, "Running"), **_init_requests("both", 1),
            **requests("prepares", 1, "Running"), **_init_requests("prepares", 2),
            **requests("sidecar", 1, "Running", "cpu"), **_init_requests("sidecar", 1),
            **requests("done", 1, "Succeeded", "cpu"), **_init_requests("done", 1),
        },
        30,
        {"sum by (pod) (namespace_pod:gpu_requested:sum)": [
            ({"pod": "both"}, 4), ({"pod": "prepares"}, 2), ({"pod": "sidecar"}, 1)]},
    ),
]  # fmt: skip
