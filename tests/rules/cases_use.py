"""How GPUs are used, and what pods want."""

from __future__ import annotations

from tests.rules.model import G0, G1, HOLDER, Case, dcgm, series, values

_ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_UTIL = "DCGM_FI_DEV_GPU_UTIL"
_POD_LABELS = {"namespace": "ml", "pod": "train-0"}


def _on(metric: str, gpu: dict[str, str], pod: str = "train-0") -> str:
    return dcgm(metric, gpu, **{**HOLDER, "pod": pod})


# samples every 15 s, as by default: 240 in an hour
_IDLE = [
    Case(
        "GPUAllocatedIdle",
        "held and idle for an hour, then it works",
        {_on(_ENGINE, G0): "0x280 0.9x40"},
        {68: [{**G0, **_POD_LABELS}]},
        (40, 72),
        step=15,
    ),
    Case(
        "GPUAllocatedIdle",
        "one burst in the hour; a GPU that nobody holds",
        {_on(_ENGINE, G0): "0x120 0.9 0x170", dcgm(_ENGINE, G1): "0x300"},
        silent=(62, 70),
        step=15,
    ),
    Case(
        "GPUAllocatedIdle",
        "somebody profiles the GPU: too few samples tell nothing",
        {_on(_ENGINE, G0): "0.5x20 stale _x200 0x80", _on(_UTIL, G0): "0x300"},
        silent=(62, 74),
        step=15,
    ),
    Case(
        "GPUAllocatedIdle",
        "without profiling fields (GeForce) by GPU_UTIL",
        {_on(_UTIL, G0): "0x300", _on(_UTIL, G1): "0x200 3 0x100"},
        {70: [{**G0, **_POD_LABELS}]},
        step=15,
    ),
    Case(
        "GPUAllocatedIdle",
        "the exporter restarts: still the same alert",
        {_on(_ENGINE, G0): "0x260 stale _x3 0x60"},
        {64: [{**G0, **_POD_LABELS}], 70: [{**G0, **_POD_LABELS}]},
        (65.5,),
        step=15,
        restart=True,
    ),
    Case(
        "GPUAllocatedIdle",
        "the pod has ended: at once, not an hour later",
        {_on(_ENGINE, G0): "0x260 stale _x60", dcgm(_ENGINE, G0): "_x261 0x60"},
        {64: [{**G0, **_POD_LABELS}]},
        (67,),
        step=15,
    ),
    Case(
        "GPUAllocatedIdle",
        "the pod is created again under its old name: its predecessor's hour is not its own",
        {
            _on(_ENGINE, G0): "0x200 stale _x3 0x700",
            series("kube_pod_created", namespace="ml", pod="train-0"): "-36000x200 stale 3060x704",
        },
        {120: [{**G0, **_POD_LABELS}], 170: [{**G0, **_POD_LABELS}]},
        (40, 62, 70, 100, 110),
        step=15,
    ),
    Case(
        "GPUAllocatedIdle",
        "MIG: the instance that is idle, not the one beside it",
        {
            dcgm(_ENGINE, G0, GPU_I_ID="1", GPU_I_PROFILE="1g.10gb", **HOLDER): "0x300",
            dcgm(_ENGINE, G0, GPU_I_ID="2", GPU_I_PROFILE="1g.10gb", **HOLDER): "0.8x300",
        },
        {70: [{**G0, **_POD_LABELS, "GPU_I_ID": "1"}]},
        step=15,
    ),
    *[
        Case(
            alert,
            "its profiling stays at 0 while kernels run (NVIDIA/DCGM issue 303)",
            {_on(_ENGINE, G0): "0x300", _on(_UTIL, G0): "99x300",
             _on(_ENGINE, G1): "0.9x300", _on(_UTIL, G1): "99x300"},
            silent=(62, 70),
            step=15,
        )
        for alert in ("GPUAllocatedIdle", "GPUStraggler")
    ],
    Case(
        "GPUAllocatedIdle",
        "GPU_UTIL says the same of it, but for samples of millions (NVIDIA/DCGM issue 199)",
        {_on(_ENGINE, G0): "0x300", _on(_UTIL, G0): "0x100 808334905 0x100 4294967295 0x97"},
        {62: [{**G0, **_POD_LABELS}], 70: [{**G0, **_POD_LABELS}]},
        step=15,
    ),
    Case(
        "GPUAllocatedIdle",
        "a GeForce: a sample of millions is no work, and an hour later no doubt",
        {_on(_UTIL, G0): "0x20 808334905 0x400"},
        {75: [{**G0, **_POD_LABELS}]},
        (62,),
        step=15,
    ),
    Case(
        "GPUStraggler",
        "one of two lags, then catches up",
        {_on(_ENGINE, G0): values((0.95, 120)), _on(_ENGINE, G1): values((0.2, 60), (0.95, 60))},
        {40: [_POD_LABELS]},
        (10, 100),
    ),
    Case(
        "GPUStraggler",
        "a little behind; and two pods of which one is lazy",
        {
            _on(_ENGINE, G0): "0.95x120",
            _on(_ENGINE, G1): "0.45x120",
            _on(_ENGINE, {**G0, "UUID": "GPU-2"}, "lazy"): "0x120",
        },
        silent=(40, 59),
    ),
    Case(
        "GPUStraggler",
        "the exporter restarts: nobody lags",
        {
            _on(_ENGINE, G0): values((0.9, 40), (None, 2), (0.9, 40)),
            _on(_ENGINE, G1): values((0.9, 40), (None, 3), (0.9, 40)),
        },
        silent=(41, 43, 60, 80),
        restart=True,
    ),
    Case(
        "GPUMemoryNearFull",
        "in a namespace that asked for it",
        {
            _on("DCGM_FI_DEV_FB_USED", G0): values((70000, 10), (80000, 20), (70000, 10)),
            _on("DCGM_FI_DEV_FB_FREE", G0): values((11000, 10), (1000, 20), (11000, 10)),
        },
        {27: [{**G0, **_POD_LABELS}]},
        (9, 24, 31),
    ),
    Case(
        "GPUMemoryNearFull",
        "vLLM fills its memory by design, in a namespace that did not ask",
        {
            dcgm("DCGM_FI_DEV_FB_USED", G0, **{**HOLDER, "namespace": "batchXv2"}): "80000x100",
            dcgm("DCGM_FI_DEV_FB_FREE", G0, **{**HOLDER, "namespace": "batchXv2"}): "1000x100",
        },
        silent=(30,),
    ),
]  # fmt: skip


def _requests(pod: str, resource: str = "nvidia_com_gpu") -> str:
    return series(
        "kube_pod_container_resource_requests",
        namespace="ml", pod=pod, container="main", resource=resource, unit="integer",
    )  # fmt: skip


def _waits(pod: str) -> str:
    return series("kube_pod_status_unschedulable", namespace="ml", pod=pod)


def _quota(kind: str, resource: str = "requests.nvidia.com/gpu") -> str:
    return series(
        "kube_resourcequota", namespace="ml", resourcequota="gpus", resource=resource, type=kind
    )


_RATIO = "cluster:gpu_allocation:ratio"
_DEMAND = [
    Case(
        "GPUPodPending",
        "waits for a GPU and gets it",
        {_waits("train-0"): values((1, 30), (None, 10)), _requests("train-0"): "8x200"},
        {20: [_POD_LABELS]},
        (14, 31),
    ),
    Case(
        "GPUPodPending",
        "a MIG instance is a GPU as well",
        {_waits("train-0"): "1x60", _requests("train-0", "nvidia_com_mig_1g_10gb"): "1x60"},
        {20: [_POD_LABELS]},
    ),
    Case(
        "GPUPodPending",
        "only its sidecar, an init container, asks for a GPU",
        {
            _waits("train-0"): "1x60",
            _requests("train-0").replace("pod_container", "pod_init_container"): "1x60",
        },
        {20: [_POD_LABELS]},
    ),
    Case(
        "GPUPodPending",
        "waits for something else; holds GPUs and runs",
        {_waits("web"): "1x60", _requests("web", "cpu"): "4x60", _requests("train-0"): "8x60"},
        silent=(20, 29),
    ),
    Case(
        "GPUQuotaFull",
        "used up for an hour, then less",
        {_quota("used"): values((8, 60), (7, 10)), _quota("hard"): "8x200"},
        {40: [{"namespace": "ml", "resourcequota": "gpus", "resource": "requests.nvidia.com/gpu"}]},
        (29, 61),
    ),
    Case(
        "GPUQuotaFull",
        "nearly; none granted and none used; another resource",
        {
            _quota("used"): "7x100",
            _quota("hard"): "8x100",
            _quota("used", "requests.nvidia.com/mig-1g.10gb"): "0x100",
            _quota("hard", "requests.nvidia.com/mig-1g.10gb"): "0x100",
            # network cards, by the SR-IOV plugin of NVIDIA's Network Operator
            _quota("used", "requests.nvidia.com/hostdev"): "8x100",
            _quota("hard", "requests.nvidia.com/hostdev"): "8x100",
            _quota("used", "requests.cpu"): "8x100",
            _quota("hard", "requests.cpu"): "8x100",
        },
        silent=(40,),
    ),
    Case(
        "GPUCapacityForecast",
        "grows by two percent a day, then jobs end",
        {_RATIO: f"0.4+{0.02 / 24:.6f}x360 0.1x340"},
        {14.9 * 1440: [{}]},
        (10 * 1440, 272 * 60, 25 * 1440),
        step=3600,
    ),
    Case(
        "GPUCapacityForecast",
        "high, but level",
        {_RATIO: "0.8x360"},
        silent=(14.9 * 1440,),
        step=3600,
    ),
    Case(
        "GPUCapacityForecast",
        "steep, with too little history",
        {_RATIO: f"_x250 0.1+{0.1 / 24:.6f}x100"},
        silent=(14.5 * 1440,),
        step=3600,
    ),
]  # fmt: skip

CASES = [*_IDLE, *_DEMAND]
