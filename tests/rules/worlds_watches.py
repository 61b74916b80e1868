"""What DCGM's health watches and hosts tell, and the records that come of it."""

from __future__ import annotations

from tests.rules.model import G0, G1, dcgm, series, values
from tests.rules.worlds import H100, World

_HEALTH, _CODE = "DCGM_EXP_GPU_HEALTH_STATUS", "DCGM_FR_NVLINK_ERROR_CRITICAL"
_DBE = "DCGM_FR_VOLATILE_DBE_DETECTED"
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_NVLINK = {"modelName": H100, "health_watch": "NVLINK", "health_error_code": _CODE}
_MEM = {"modelName": H100, "health_watch": "MEM", "health_error_code": _DBE}
_NEW = {"modelName": H100, "health_watch": "MEM", "health_error_code": "DCGM_FR_NEW"}
_BY = {"job": "node-exporter", "instance": "10.0.0.1:9100"}


def _result_labels(of: dict[str, str], watch: dict[str, str], **extra: str) -> dict[str, str]:
    return {
        **of,
        **watch,
        "result": f"{watch['health_watch']}/{watch['health_error_code']}",
        **extra,
    }


WORLDS = [
    World(
        "results of health watches, by the exporter and by a host engine",
        {
            dcgm(_HEALTH, G0, **_NVLINK): "20x100",
            dcgm(_HEALTH, G1, **_MEM): "20x100",
            dcgm(_HEALTH, G0, **_NEW): "10x100",
            dcgm(_HEALTH, G1, health_watch="NVLINK", health_error_code="DCGM_FR_OK"): "0x100",
            dcgm("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", G1): values((5, 10), (0, 40)),
            dcgm(_HEALTH, G0, health_watch="PCIE", health_error_code="DCGM_FR_OK"): "0x100",
            series("gpuboot_dcgm_health", **_BY, **G0, **_NVLINK): "20x100",
            series("gpuboot_dcgm_health", **_BY, **G1, **_MEM): "20x100",
        },
        30,
        {
            "gpu:health_watch:level": [
                (_result_labels(G0, _NVLINK), 20), (_result_labels(G1, _MEM), 20),
                (_result_labels(G0, _NEW), 10)],
            "gpu:nvlinks_used:info": [({"node": "gpu1", "UUID": "GPU-1"}, 1)],
            "gpu:health_watch:judged": [
                (_result_labels(G0, _NVLINK, judged="info"), 20),
                (_result_labels(G1, _MEM, judged="critical"), 20),
                (_result_labels(G0, _NEW, judged="warning"), 10)],
            "gpu:dcgm_health:level": [
                (_result_labels(G0, _NVLINK), 20), (_result_labels(G1, _MEM), 20)],
            "gpu:dcgm_health:judged": [
                (_result_labels(G0, _NVLINK, judged="info"), 20),
                (_result_labels(G1, _MEM, judged="critical"), 20)],
        },
    ),
    World(
        "a host that booted, a GPU that was reset since, and a node of the cluster alone",
        {
            **{dcgm("DCGM_FI_DEV_SM_CLOCK", of): "1980x100" for of in (G0, G1)},
            dcgm(_ENERGY, G0): values((9e9, 20, 6e6), (0, 20, 6e6)),
            dcgm(_ENERGY, G1): values((9e9, 40, 6e6)),
            series("node_boot_time_seconds", **_BY): "300x100",
            series("node_uname_info", **_BY, nodename="gpu1"): "1x100",
            series("kube_node_info", node="cpu1"): "1x100",
        },
        30,
        {
            "node:booted:timestamp": [({"node": "gpu1"}, 300)],
            # lower than a minute before for the first minute
            "gpu:repaired:timestamp": [
                ({"node": "gpu1", "UUID": "GPU-0"}, 20 * 60 + 30),
                ({"node": "gpu1", "UUID": "GPU-1"}, 300)],
            "node:present:info": [
                ({"node": name}, 1) for name in ("cpu1", "gpu1", "gpu2")],
        },
    ),
]  # fmt: skip
