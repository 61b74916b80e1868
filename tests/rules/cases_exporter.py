"""GPUs that are lost, and exporters, plugins and operators that are not as they should be."""

from __future__ import annotations

from tests.rules.model import G0, G1, Case, dcgm, series, up, values

_TEMP = "DCGM_FI_DEV_GPU_TEMP"
_GONE = {"node": "gpu1"}
_OTHER = {"node": "gpu2"}
_FOUR = {
    dcgm(_TEMP, {"node": "gpu2", "UUID": f"GPU-2{place}", "gpu": str(place)}): "40x200"
    for place in range(4)
} | {up("gpu2"): "1x200"}


def _node(what: str, count: float | str, node: str = "gpu1", **more: str) -> dict[str, str]:
    name = series(
        f"kube_node_status_{what}",
        job="kube-state-metrics", node=node,
        **{"resource": "nvidia_com_gpu", "unit": "integer", **more},
    )  # fmt: skip
    return {name: count if isinstance(count, str) else f"{count}x200"}


_LOST = [
    Case(
        "GPULost",
        "one of two falls off the bus, and is back after a reboot",
        {
            dcgm(_TEMP): "40x200",
            dcgm(_TEMP, G1): values((40, 10), (None, 20), (40, 20)),
            up(): "1x200",
        }
        | _FOUR,
        {17: [_GONE], 29: [_GONE]},
        (9, 14, 32),
    ),
    Case(
        "GPULost",
        "all of them, while the exporter answers",
        {dcgm(_TEMP): values((40, 10), (None, 30)), dcgm(_TEMP, G1): values((40, 10), (None, 30)),
         up(): "1x200"} | _FOUR,
        {17: [_GONE]},
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
        | _FOUR,
        quiet=(20, 29),
    ),
    Case(
        "GPULost",
        "the exporter restarts within the time that it may take",
        {
            dcgm(_TEMP): values((40, 10), (None, 3), (40, 20)),
            dcgm(_TEMP, G1): values((40, 10), (None, 3), (40, 20)),
            up(): values((1, 10), (0, 3), (1, 20)),
        }
        | _FOUR,
        quiet=(9, 12, 14, 20),
        restart=True,
    ),
    Case(
        "GPUDeviceUnhealthy",
        "one of four, until the plugin restarts",
        _node("capacity", 4) | _node("allocatable", values((4, 10), (3, 20), (4, 10))),
        {16: [{**_GONE, "resource": "nvidia_com_gpu"}]},
        (9, 14, 32),
    ),
    Case(
        "GPUDeviceUnhealthy",
        "other resources are none of it; two kube-state-metrics during a rollout",
        _node("capacity", 8, resource="cpu", unit="core")
        | _node("allocatable", 7, resource="cpu", unit="core")
        | _node("capacity", 4, instance="a")
        | _node("capacity", 4, instance="b")
        | _node("allocatable", 4, instance="a"),
        quiet=(20,),
    ),
    Case(
        "GPUDeviceUnhealthy",
        "MIG instances by profile",
        _node("capacity", 7, resource="nvidia_com_mig_1g_10gb")
        | _node("allocatable", 6, resource="nvidia_com_mig_1g_10gb"),
        {8: [{**_GONE, "resource": "nvidia_com_mig_1g_10gb"}]},
    ),
    Case(
        "GPUDevicePluginMissing",
        "labelled as a GPU node, and nothing to give, until the plugin is back",
        {series("kube_node_labels", node="gpu1", label_gpuboot_io_gpus="2"): "1x200",
         series("kube_node_labels", node="gpu2", label_nvidia_com_gpu_present="true"): "1x200"}
        | _node("allocatable", values((0, 30), (2, 30)))
        | _node("allocatable", "2x200", "gpu2"),
        {20: [_GONE]},
        (14, 32),
    ),
    Case(
        "GPUDevicePluginMissing",
        "a node without GPUs, and a GPU node without kube-state-metrics",
        {series("kube_node_labels", node="web1", label_kubernetes_io_os="linux"): "1x100"},
        quiet=(20, 40),
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
        quiet=(70, 119),
        restart=True,
    ),
]  # fmt: skip

_EXPORTER = [
    Case(
        "GPUExporterDown",
        "it does not answer, and then it does",
        {up(): values((1, 10), (0, 20), (1, 10)), up("gpu2"): "1x200"},
        {16: [_GONE], 29: [_GONE]},
        (9, 14, 31),
    ),
    Case(
        "GPUExporterDown",
        "it restarts",
        {up(): values((1, 10), (0, 4), (1, 20))},
        quiet=(13, 15, 20),
        restart=True,
    ),
    Case(
        "GPUExporterDown",
        "during a rollout the old target is down and the new one is up",
        {up(): "1x60", series("up", job="dcgm-exporter", node="gpu1", instance="gpu1"): "0x60"},
        quiet=(20,),
    ),
    Case(
        "GPUExporterAbsent",
        "no target at all, until there is one",
        {series("up", job="node-exporter", node="gpu1"): "1x200",
         up(): values((None, 30), (1, 20))},
        {15: [{}], 29: [{}]},
        (9, 31),
    ),
    Case("GPUExporterAbsent", "down is not absent: it restarts", {up(): "0x60"}, quiet=(5, 20),
         restart=True),
    Case(
        "GPUNodeNotMonitored",
        "a GPU node without a target, until it has one",
        _node("capacity", 2) | _node("capacity", 2, "gpu2")
        | {up("gpu2"): "1x200", up(): values((None, 30), (1, 20))},
        {20: [_GONE]},
        (14, 31),
    ),
    Case(
        "GPUNodeNotMonitored",
        "a node whose GPUs are gone has nothing to watch; a target that is down is one",
        _node("capacity", 0) | _node("capacity", 2, "gpu2") | {up("gpu2"): "0x60"},
        quiet=(20, 29),
        restart=True,
    ),
    Case(
        "GPUMetricsMissing",
        "the exporter answers without a GPU, until it has them",
        {up(): "1x200", dcgm(_TEMP): values((40, 10), (None, 20), (40, 10))} | _FOUR,
        {17: [_GONE]},
        (9, 14, 31),
    ),
    Case(
        "GPUMetricsMissing",
        "it restarts, or is down: that is another alert",
        {up(): values((1, 10), (0, 20), (1, 20)),
         dcgm(_TEMP): values((40, 10), (None, 21), (40, 20))},
        quiet=(16, 29, 32, 40),
        restart=True,
    ),
    Case(
        "GPUExporterMissingCounters",
        "another collectors file, until ours is back",
        {up(): "1x300", dcgm(_TEMP): "40x300",
         dcgm("DCGM_EXP_GPU_HEALTH_STATUS", health_watch="PCIE"): values((None, 60), (0, 20))}
        | _FOUR
        | {dcgm("DCGM_EXP_GPU_HEALTH_STATUS", _OTHER, health_watch="PCIE"): "0x300"},
        {40: [_GONE]},
        (29, 62),
    ),
    Case(
        "GPUExporterMissingCounters",
        "ours, while it restarts",
        {up(): values((1, 30), (0, 2), (1, 40)), dcgm(_TEMP): values((40, 30), (None, 2), (40, 40)),
         dcgm("DCGM_EXP_GPU_HEALTH_STATUS", health_watch="PCIE"):
         values((0, 30), (None, 2), (0, 40))},
        quiet=(31, 50, 70),
        restart=True,
    ),
    Case(
        "GPUOperatorDegraded",
        "an operand is not ready, for half an hour",
        {series("gpu_operator_reconciliation_status", job="gpu-operator"):
         values((1, 10), (0, 30), (1, 10))},
        {30: [{}]},
        (9, 24, 41),
    ),
    Case(
        "GPUOperatorDegraded",
        "ready; failing for a moment during a rollout",
        {series("gpu_operator_reconciliation_status", job="gpu-operator"):
         values((1, 10), (-1, 10), (1, 30))},
        quiet=(19, 30),
    ),
]  # fmt: skip

CASES = [*_LOST, *_EXPORTER]
