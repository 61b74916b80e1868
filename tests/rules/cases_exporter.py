"""Exporters, counters and operators that are not as they should be."""

from __future__ import annotations

from tests.rules.cases_lost import FOUR, LOST_NODE, on_node
from tests.rules.model import Case, dcgm, series, up, values

_TEMP = "DCGM_FI_DEV_GPU_TEMP"
_SECOND_NODE = {"node": "gpu2"}

CASES = [
    Case(
        "GPUExporterDown",
        "it does not answer, and then it does",
        {up(): values((1, 10), (0, 20), (1, 10)), up("gpu2"): "1x200"},
        {16: [LOST_NODE], 29: [LOST_NODE]},
        (9, 14, 31),
    ),
    Case(
        "GPUExporterDown",
        "it restarts",
        {up(): values((1, 10), (0, 4), (1, 20))},
        silent=(13, 15, 20),
        restart=True,
    ),
    Case(
        "GPUExporterDown",
        "during a rollout the old target is down and the new one is up",
        {up(): "1x60", series("up", job="dcgm-exporter", node="gpu1", instance="gpu1"): "0x60"},
        silent=(20,),
    ),
    Case(
        "GPUExporterAbsent",
        "no target at all, until there is one",
        {series("up", job="node-exporter", node="gpu1"): "1x200",
         up(): values((None, 30), (1, 20))},
        {15: [{}], 29: [{}]},
        (9, 31),
    ),
    Case(
        "GPUExporterAbsent",
        "the GPU node is in the cluster, until it is taken out on purpose",
        {series("kube_node_info", node="web1"): "1x200",
         series("kube_node_info", node="gpu1"): values((1, 30), (None, 30))},
        {15: [{}], 29: [{}]},
        (9, 31, 50),
    ),
    Case("GPUExporterAbsent", "down is not absent: it restarts", {up(): "0x60"}, silent=(5, 20),
         restart=True),
    Case(
        "GPUNodeNotMonitored",
        "a GPU node without a target, until it has one",
        on_node("capacity", 2) | on_node("capacity", 2, "gpu2")
        | {up("gpu2"): "1x200", up(): values((None, 30), (1, 20))},
        {20: [LOST_NODE]},
        (14, 31),
    ),
    Case(
        "GPUNodeNotMonitored",
        "a node whose GPUs are gone has nothing to watch; a target that is down is one",
        on_node("capacity", 0) | on_node("capacity", 2, "gpu2") | {up("gpu2"): "0x60"},
        silent=(20, 29),
        restart=True,
    ),
    Case(
        "GPUMetricsMissing",
        "the exporter answers without a GPU, until it has them",
        {up(): "1x200", dcgm(_TEMP): values((40, 10), (None, 20), (40, 10))} | FOUR,
        {17: [LOST_NODE]},
        (9, 14, 31),
    ),
    Case(
        "GPUMetricsMissing",
        "a vGPU guest has no temperature",
        {up(): "1x200", dcgm("DCGM_FI_DEV_SM_CLOCK"): "1410x200"},
        silent=(20, 90),
    ),
    Case(
        "GPUMetricsMissing",
        "DCGM knows nothing of the GPU, and says so",
        {up(): "1x200", dcgm("DCGM_FI_DEV_SM_CLOCK"): "9223372036854775794x200",
         dcgm(_TEMP): "9223372036854775794x200"},
        {20: [LOST_NODE]},
    ),
    Case(
        "GPUMetricsMissing",
        "it restarts, or is down: that is another alert",
        {up(): values((1, 10), (0, 20), (1, 20)),
         dcgm(_TEMP): values((40, 10), (None, 21), (40, 20))},
        silent=(16, 29, 32, 40),
        restart=True,
    ),
    Case(
        "GPUExporterMissingCounters",
        "another collectors file, until ours is back",
        {up(): "1x300", dcgm(_TEMP): "40x300",
         dcgm("DCGM_EXP_GPU_HEALTH_STATUS", health_watch="PCIE"): values((None, 60), (0, 20))}
        | FOUR
        | {dcgm("DCGM_EXP_GPU_HEALTH_STATUS", _SECOND_NODE, health_watch="PCIE"): "0x300"},
        {40: [LOST_NODE]},
        (29, 62),
    ),
    Case(
        "GPUExporterMissingCounters",
        "ours, while it restarts",
        {up(): values((1, 30), (0, 2), (1, 40)), dcgm(_TEMP): values((40, 30), (None, 2), (40, 40)),
         dcgm("DCGM_EXP_GPU_HEALTH_STATUS", health_watch="PCIE"):
         values((0, 30), (None, 2), (0, 40))},
        silent=(31, 50, 70),
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
        silent=(19, 30),
    ),
]  # fmt: skip
