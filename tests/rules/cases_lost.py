"""GPUs that are lost: to the exporter, to the device plugin, to the scheduler."""

from __future__ import annotations

from tests.rules.model import G0, G1, Case, dcgm, series, up, values

_TEMP = "DCGM_FI_DEV_GPU_TEMP"
LOST_NODE = {"node": "gpu1"}
FOUR = {
    dcgm(_TEMP, {"node": "gpu2", "UUID": f"GPU-2{place}", "gpu": str(place)}): "40x200"
    for place in range(4)
} | {up("gpu2"): "1x200"}


def on_node(kind: str, count: float | str, node: str = "gpu1", **labels: str) -> dict[str, str]:
    name = series(
        f"kube_node_status_{kind}",
        job="kube-state-metrics", node=node,
        **{"resource": "nvidia_com_gpu", "unit": "integer", **labels},
    )  # fmt: skip
    return {name: count if isinstance(count, str) else f"{count}x200"}


CASES = [
    Case(
        "GPULost",
        "one of two falls off the bus, and is back after a reboot",
        {
            dcgm(_TEMP): "40x200",
            dcgm(_TEMP, G1): values((40, 10), (None, 20), (40, 20)),
            up(): "1x200",
        }
        | FOUR,
        {17: [LOST_NODE], 29: [LOST_NODE]},
        (9, 14, 32),
    ),
    Case(
        "GPULost",
        "all of them, while the exporter answers",
        {dcgm(_TEMP): values((40, 10), (None, 30)), dcgm(_TEMP, G1): values((40, 10), (None, 30)),
         up(): "1x200"} | FOUR,
        {17: [LOST_NODE]},
        (9,),
    ),
    Case(
        "GPULost",
        "all are there: MIG instances and pods that share a GPU count once",
        {
            **{dcgm(_TEMP, G0, GPU_I_ID=str(i), GPU_I_PROFILE="1g.10gb", pod=f"p{i}"): "40x60"
               for i in range(7)},
            dcgm(_TEMP, G1): "40x60",
            up(): "1x60",
        }
        | FOUR,
        silent=(20, 29),
    ),
    Case(
        "GPULost",
        "a vGPU guest has no temperature, GB10 no memory: they are there all the same",
        {
            # dcgm-exporter#193 and #236; freelens-gpu-extension's and telegraf's recordings
            dcgm("DCGM_FI_DEV_SM_CLOCK"): "1410x60",
            dcgm("DCGM_FI_DEV_FB_USED"): "9223372036854775794x60",
            dcgm(_TEMP, G1): "9223372036854775794x60",
            dcgm("DCGM_FI_DEV_GPU_UTIL", G1): "0x60",
            up(): "1x60",
        }
        | FOUR,
        silent=(20, 29),
    ),
    Case(
        "GPULost",
        "DCGM's mark for no value is no GPU",
        {
            dcgm("DCGM_FI_DEV_SM_CLOCK"): "9223372036854775794x60",
            dcgm(_TEMP): "9223372036854775794x60",
            dcgm(_TEMP, G1): "40x60",
            up(): "1x60",
        }
        | FOUR,
        {20: [LOST_NODE]},
    ),
    Case(
        "GPULost",
        "a GPU dies and takes the exporter with it, which then does not answer",
        {
            dcgm(_TEMP): values((40, 20), (None, 60)),
            dcgm(_TEMP, G1): values((40, 10), (None, 70)),
            up(): values((1, 20), (0, 60)),
        }
        | FOUR,
        {17: [LOST_NODE], 22: [LOST_NODE], 60: [LOST_NODE]},
        (9,),
    ),
    Case(
        "GPULost",
        "a GPU dies and stops the exporter at once, and the device plugin takes it back",
        {
            dcgm(_TEMP): values((40, 20), (None, 60)),
            dcgm(_TEMP, G1): values((40, 20), (None, 60)),
            up(): values((1, 20), (0, 60)),
        }
        | on_node("allocatable", values((2, 20), (1, 60)))
        | FOUR,
        {27: [LOST_NODE], 60: [LOST_NODE]},
        (19, 24),
    ),
    Case(
        "GPULost",
        "the exporter alone is down: that says nothing of GPUs",
        {
            dcgm(_TEMP): values((40, 20), (None, 60)),
            dcgm(_TEMP, G1): values((40, 20), (None, 60)),
            up(): values((1, 20), (0, 60)),
        }
        | on_node("allocatable", 2)
        | FOUR,
        silent=(19, 26, 40, 70),
    ),
    Case(
        "GPULost",
        "the exporter restarts within the time that it may take",
        {
            dcgm(_TEMP): values((40, 10), (None, 3), (40, 20)),
            dcgm(_TEMP, G1): values((40, 10), (None, 3), (40, 20)),
            up(): values((1, 10), (0, 3), (1, 20)),
        }
        | FOUR,
        silent=(9, 12, 14, 20),
        restart=True,
    ),
    Case(
        "GPUDeviceUnhealthy",
        "one of four, until the plugin restarts",
        on_node("capacity", 4) | on_node("allocatable", values((4, 10), (3, 20), (4, 10))),
        {18: [{**LOST_NODE, "resource": "nvidia_com_gpu"}]},
        (9, 16, 32),
    ),
    Case(
        "GPUDeviceUnhealthy",
        "the device plugin goes: the kubelet keeps the capacity for five minutes, and then some",
        on_node("capacity", values((4, 16), (0, 30)))
        | on_node("allocatable", values((4, 10), (0, 36))),
        silent=(14, 15, 16, 17, 18, 30),
    ),
    Case(
        "GPUDeviceUnhealthy",
        "the device plugin starts again: capacity first, or allocatable",
        on_node("capacity", values((0, 5), (4, 30)), "gpu1")
        | on_node("allocatable", values((0, 6), (4, 29)), "gpu1")
        | on_node("capacity", values((4, 5), (8, 30)), "gpu2")
        | on_node("allocatable", values((4, 8), (8, 27)), "gpu2"),
        silent=(5, 6, 7, 8, 12, 15),
    ),
    Case(
        "GPUDeviceUnhealthy",
        "other resources are none of it; two kube-state-metrics during a rollout",
        on_node("capacity", 8, resource="cpu", unit="core")
        | on_node("allocatable", 7, resource="cpu", unit="core")
        | on_node("capacity", 4, instance="a")
        | on_node("capacity", 4, instance="b")
        | on_node("allocatable", 4, instance="a"),
        silent=(20,),
    ),
    Case(
        "GPUDeviceUnhealthy",
        "MIG instances by profile",
        on_node("capacity", 7, resource="nvidia_com_mig_1g_10gb")
        | on_node("allocatable", 6, resource="nvidia_com_mig_1g_10gb"),
        {8: [{**LOST_NODE, "resource": "nvidia_com_mig_1g_10gb"}]},
    ),
    Case(
        "GPUDevicePluginMissing",
        "labelled as a GPU node, and nothing to give, until the plugin is back",
        {series("kube_node_labels", node="gpu1", label_gpuboot_io_gpus="2"): "1x200",
         series("kube_node_labels", node="gpu2", label_nvidia_com_gpu_present="true"): "1x200"}
        | on_node("allocatable", values((0, 30), (2, 30)))
        | on_node("allocatable", "2x200", "gpu2"),
        {20: [LOST_NODE]},
        (14, 32),
    ),
    Case(
        "GPUDevicePluginMissing",
        "a node without GPUs, and a GPU node without kube-state-metrics",
        {series("kube_node_labels", node="web1", label_kubernetes_io_os="linux"): "1x100"},
        silent=(20, 40),
    ),
    Case(
        "GPUDevicePluginMissing",
        "GPUs that pods share by time, or by MPS, are offered under another name",
        {series("kube_node_labels", node=node, label_nvidia_com_gpu_present="true"): "1x200"
         for node in ("gpu1", "gpu2")}
        # k8s-device-plugin v0.20.0: `.shared` with renameByDefault; the old name stays, with 0
        | on_node("allocatable", 0) | on_node("allocatable", 8, resource="nvidia_com_gpu_shared")
        | on_node("allocatable", 14, "gpu2", resource="nvidia_com_mig_1g_10gb_shared"),
        silent=(20, 90),
    ),
    Case(
        "GPUDeviceUnhealthy",
        "shares of a GPU",
        on_node("capacity", 8, resource="nvidia_com_gpu_shared")
        | on_node("allocatable", 4, resource="nvidia_com_gpu_shared"),
        {8: [{**LOST_NODE, "resource": "nvidia_com_gpu_shared"}]},
    ),
    Case(
        "GPUDriverVersionSkew",
        "vGPU guests without a temperature count as well",
        {dcgm(_TEMP): "40x300",
         dcgm("DCGM_FI_DEV_SM_CLOCK", {"node": "gpu2", "UUID": "GPU-9", "gpu": "0"},
              DCGM_FI_DRIVER_VERSION="580.95.05"): "1410x300"},
        {70: [{}]},
        (59,),
    ),
    Case(
        "GPUDriverVersionSkew",
        "one node has another driver, for a time",
        {dcgm(_TEMP): "40x300",
         dcgm(_TEMP, {"node": "gpu2", "UUID": "GPU-9", "gpu": "0"},
              DCGM_FI_DRIVER_VERSION="580.178.04"): values((40, 80), (None, 20))},
        {70: [{}]},
        (50, 82),
    ),
    Case(
        "GPUDriverVersionSkew",
        "the same everywhere; the exporter restarts",
        {dcgm(_TEMP): values((40, 60), (None, 2), (40, 60)), dcgm(_TEMP, G1): "40x300"},
        silent=(70, 119),
        restart=True,
    ),
]  # fmt: skip
