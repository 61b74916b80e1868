"""GPUs that compute for no pod that was given them."""

from __future__ import annotations

from tests.rules.model import G0, G1, HOLDER, Case, dcgm, series, values

_ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_UTIL = "DCGM_FI_DEV_GPU_UTIL"


def _on(metric: str, gpu: dict[str, str], pod: str = "train-0") -> str:
    return dcgm(metric, gpu, **{**HOLDER, "pod": pod})


def _running(pod: str, count: int = 1, resource: str = "nvidia_com_gpu") -> dict[str, str]:
    """What kube-state-metrics says of a pod on gpu1 that was given GPUs."""
    pod_labels = {"namespace": "ml", "pod": pod}
    request_labels = {
        **pod_labels,
        "container": "main",
        "node": "gpu1",
        "resource": resource,
        "unit": "integer",
    }
    return {
        series("kube_pod_container_resource_requests", **request_labels): f"{count}x300",
        series("kube_pod_status_phase", **pod_labels, phase="Running"): "1x300",
    }


def _offers(resource: str = "nvidia_com_gpu") -> dict[str, str]:
    return {
        series("kube_node_status_capacity", node="gpu1", resource=resource, unit="integer"): "8x300"
    }


def _part(instance: str, **labels: str) -> str:
    return dcgm(_ENGINE, G0, GPU_I_ID=instance, GPU_I_PROFILE="1g.10gb", **labels)


CASES = [
    Case(
        "GPUUsedWithoutPod",
        "a process of the host, on a node whose GPUs no pod holds; it ends",
        {dcgm(_ENGINE, G0): values((0, 10), (0.9, 60), (0, 20)), **_offers()},
        {42: [G0], 69: [G0]},
        (9, 39, 76),
    ),
    Case(
        "GPUUsedWithoutPod",
        "a pod without a request beside one that has another GPU",
        {
            _on(_ENGINE, G0): "0.9x100",
            dcgm(_ENGINE, G1): "0.6x100",
            **_running("train-0"),
            **_offers(),
        },
        {45: [G1]},
    ),
    Case(
        "GPUUsedWithoutPod",
        "without profiling fields (GeForce) by GPU_UTIL",
        {dcgm(_UTIL, G0): "40x100", **_offers()},
        {45: [G0]},
    ),
    Case(
        "GPUUsedWithoutPod",
        "the exporter restarts: it begins to count anew",
        {dcgm(_ENGINE, G0): values((0.9, 40), (None, 3), (0.9, 40)), **_offers()},
        {39: [G0], 76: [G0]},
        (42, 70),
        restart=True,
    ),
    Case(
        "GPUUsedWithoutPod",
        "a pod holds it, ends while it is busy, and the next one takes it",
        {
            _on(_ENGINE, G0): values((0.9, 30), (None, 50)),
            dcgm(_ENGINE, G0): values((None, 30), (0, 8), (None, 42)),
            _on(_ENGINE, G0, "train-1"): values((None, 38), (0.9, 40)),
            **_running("train-0"),
            **_running("train-1", 0),
            **_offers(),
        },
        silent=(20, 32, 40, 60),
    ),
    Case(
        "GPUUsedWithoutPod",
        "a short test of an administrator; nvidia-persistenced, which computes nothing",
        {
            dcgm(_ENGINE, G0): values((0, 10), (0.9, 22), (0, 30)),
            dcgm(_ENGINE, G1): "0.02x100",
            dcgm("DCGM_FI_DEV_FB_USED", G1): "600x100",
            **_offers(),
        },
        silent=(31, 36, 41, 49),
    ),
    Case(
        "GPUUsedWithoutPod",
        "the exporter names no pods: it cannot tell",
        {dcgm(_ENGINE, G0): "0.9x100", **_running("train-0"), **_offers()},
        silent=(35, 49),
    ),
    Case(
        "GPUUsedWithoutPod",
        "a Docker host, of which no Kubernetes knows",
        {dcgm(_ENGINE, G0): "0.9x100"},
        silent=(35, 49),
    ),
    Case(
        "GPUUsedWithoutPod",
        "MIG: of two instances one is a pod's, with a series of the whole GPU beside them",
        {
            _part("1", **HOLDER): "0.9x100",
            _part("2"): "0.7x100",
            dcgm(_ENGINE, G0): "0.8x100",
            **_running("train-0", resource="nvidia_com_mig_1g_10gb"),
            **_offers("nvidia_com_mig_1g_10gb"),
        },
        {45: [{**G0, "GPU_I_ID": "2"}]},
    ),
    Case(
        "GPUUsedWithoutPod",
        "time-slicing: two pods share a GPU, and nobody uses the other one",
        {
            _on(_ENGINE, G0, "a"): "0.9x100",
            _on(_ENGINE, G0, "b"): "0.9x100",
            dcgm(_ENGINE, G1): "0x100",
            **_running("a"),
            **_running("b"),
            **_offers(),
        },
        silent=(35, 49),
    ),
    Case(
        "GPUUsedWithoutPod",
        "time-slicing: something uses the GPU of which no pod has a share",
        {
            _on(_ENGINE, G0, "a"): "0.9x100",
            _on(_ENGINE, G0, "b"): "0.9x100",
            dcgm(_ENGINE, G1): "0.5x100",
            **_running("a"),
            **_running("b"),
            **_offers(),
        },
        {45: [G1]},
    ),
]  # fmt: skip
