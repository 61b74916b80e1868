"""Results of DCGM's health watches: of cards that are well, and of cards that are not.

Levels, codes and their order: modules/health/DcgmHealthWatch.cpp of DCGM 4.6.0; the exporter shows
the last result of a watch (gpu_health_collector.go, applyGPUHealthIncidents).
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.rules.model import G0, G1, Case, dcgm, series, values

_HEALTH = "DCGM_EXP_GPU_HEALTH_STATUS"
_HOST = "gpuboot_dcgm_health"
_CRITICAL, _DOWN = "NVLINK_ERROR_CRITICAL", "NVLINK_DOWN"
_H100, _B200 = "NVIDIA H100 80GB HBM3", "NVIDIA B200"
# by NVML, as recordings have them (tests/populations)
_BEFORE_BLACKWELL = (
    _H100, "NVIDIA H200", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA GH200 480GB",
    "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A30", "NVIDIA A40",
    "Tesla V100-SXM2-32GB", "NVIDIA RTX A6000",
)  # fmt: skip
_BLACKWELL = ("NVIDIA GB300", "NVIDIA GB200", _B200, "NVIDIA B300 SXM6 AC")
_WITHOUT_BRIDGE = ("NVIDIA A100 80GB PCIe", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA A40")
_LONG = (5, 20, 34)


def _two(model: str) -> dict[str, str]:
    """Two GPUs of a node, which its exporter shows."""
    return {dcgm("DCGM_FI_DEV_SM_CLOCK", of, modelName=model): "1980x70" for of in (G0, G1)}


def _watch_result(watch: str, code: str, level: object, model: str = _H100) -> dict[str, str]:
    """The first of two GPUs. + code: without DCGM_FR_; level: one, or values"""
    labels = {"health_watch": watch, "health_error_code": f"DCGM_FR_{code}", "modelName": model}
    text = level if isinstance(level, str) else f"{level}x70"
    return {dcgm(_HEALTH, **labels): text} | _two(model)


def _alert_labels(watch: str, code: str) -> list[Mapping[str, str]]:
    return [{**G0, "health_watch": watch, "health_error_code": f"DCGM_FR_{code}"}]


def _well(description: str, samples: Mapping[str, str]) -> list[Case]:
    """Neither fails nor warns."""
    return [
        Case(alert, description, samples, silent=_LONG)
        for alert in ("GPUHealthFail", "GPUHealthWarn")
    ]


_SINCE_RESET = [
    case
    for model in _BEFORE_BLACKWELL
    # MonitorNVLinkErrorFields: the CRC, replay and recovery counts since the last reset
    # (aws/eks-node-monitoring-agent#261)
    for case in _well(
        f"NVLink errors since the last reset: {model}",
        _watch_result("NVLINK", _CRITICAL, 20, model),
    )
] + [
    case
    for model in _BLACKWELL
    for case in _well(
        f"links that were recovered since the last reset: {model}",
        _watch_result("NVLINK", _CRITICAL, 10, model),
    )
]  # fmt: skip
_NO_LINKS = [
    case
    for model in _WITHOUT_BRIDGE
    # MonitorNVLinkStatus; NVIDIA/NVSentinel#1481 has the output of an A100 80GB PCIe
    for case in _well(f"no bridge: {model}", _watch_result("NVLINK", _DOWN, 20, model))
] + _well(
    "the only GPU of a machine has nobody to be linked with",
    {
        name: text
        for name, text in _watch_result("NVLINK", _DOWN, 20).items()
        if 'UUID="GPU-1"' not in name
    },
)  # fmt: skip
_NOT_OURS = [
    # MonitorImex; NVIDIA/NVSentinel#1471 (p5), NVIDIA/aicr#2641 (GB300), NVIDIA/DCGM#308
    *_well("no IMEX daemon: an idle p5", _watch_result("NVLINK", "IMEX_UNHEALTHY", 20)),
    *_well(
        "no IMEX daemon: an idle GB300",
        _watch_result("NVLINK", "IMEX_UNHEALTHY", 20, "NVIDIA GB300"),
    ),
    # MonitorFabricFields: DcgmFMStatusNvmlTooOld
    *_well(
        "a driver that cannot tell of a fabric", _watch_result("NVLINK", "FABRIC_PROBE_STATE", 20)
    ),
    # MonitorPower: any moment at the power limit
    *_well(
        "a card at its power limit", _watch_result("POWER", "CLOCKS_EVENT_POWER", 10, "Tesla T4")
    ),
    *_well(
        "the same by its old name", _watch_result("POWER", "CLOCK_THROTTLE_POWER", 10, "Tesla T4")
    ),
    *_well("an old name of a contained error", _watch_result("ALL", "UNKNOWN(131)", 10)),
    *_well(
        "one error in a minute, by a link of a Blackwell",
        _watch_result("NVLINK", _CRITICAL, values((0, 30), (20, 1.5), (0, 60)), _B200),
    ),
]
_REAL = [
    Case("GPUHealthFail", f"{watch}: {code} of {model}", _watch_result(watch, code, 20, model),
         {3: _alert_labels(watch, code), 34: _alert_labels(watch, code)}, (1,))
    for watch, code, model in (
        *(("NVLINK", _CRITICAL, model) for model in _BLACKWELL),
        *(("NVLINK", _DOWN, model) for model in
          (_H100, "NVIDIA H200", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-32GB", *_BLACKWELL)),
        ("NVLINK", "NVLINK_CRC_ERROR_THRESHOLD", _H100),
        ("NVLINK", "NVLINK_EFFECTIVE_BER_THRESHOLD", _B200),
        ("NVLINK", "NVLINK_SYMBOL_BER_THRESHOLD", _B200),
        ("NVLINK", "FIELD_VIOLATION", "NVIDIA GB200"),
        ("MEM", "VOLATILE_DBE_DETECTED", _H100),
        ("MEM", "ROW_REMAP_FAILURE", _H100),
        ("MEM", "FAULTY_MEMORY", _B200),
        ("MEM", "RETIRED_PAGES_LIMIT", "Tesla T4"),
        ("DRIVER", "GPU_RECOVERY_RESET", _H100),
        ("ALL", "FALLEN_OFF_BUS", _H100),
        ("ALL", "UNCONTAINED_ERROR", _H100),
        ("ALL", "XID_ERROR", _H100),
    )
]  # fmt: skip
_WARNED = [
    Case("GPUHealthWarn", f"{watch}: {code} at {level} of {model}",
         _watch_result(watch, code, level, model),
         {11: _alert_labels(watch, code), 34: _alert_labels(watch, code)}, (9,))
    for watch, code, level, model in (
        ("NVLINK", "SOMETHING_NEW", 20, _H100),
        ("NVLINK", "UNKNOWN(140)", 20, _H100),
        ("MEM", "SOMETHING_NEW", 10, _H100),
        ("UNKNOWN(4096)", "NVLINK_DOWN", 20, _H100),
        ("NVLINK", _CRITICAL, 20, "NVIDIA Model Of Next Year"),
        ("THERMAL", "CLOCKS_EVENT_THERMAL", 10, _H100),
        ("THERMAL", "SOMETHING_NEW", 20, _H100),
        ("POWER", "POWER_UNREADABLE", 10, _H100),
        ("INFOROM", "CORRUPT_INFOROM", 10, _H100),
        ("MEM", "UNCORRECTABLE_ROW_REMAP_LIMIT", 10, _H100),
        ("NVLINK", "NVLINK_ERROR_THRESHOLD", 10, _H100),
    )
] + [
    Case("GPUHealthFail", f"gpuboot's table lacks it: {watch}, {code}",
         _watch_result(watch, f"{code}", 20, model), silent=_LONG)
    for watch, code, model in (
        ("NVLINK", "SOMETHING_NEW", _H100), ("NVLINK", _CRITICAL, "NVIDIA Model Of Next Year"),
    )
]  # fmt: skip


_BRIDGED = {
    **_two("NVIDIA A100 80GB PCIe"),
    dcgm(_HEALTH, health_watch="NVLINK", health_error_code="DCGM_FR_OK",
         modelName="NVIDIA A100 80GB PCIe"): values((0, 10), (None, 1)),
    dcgm(_HEALTH, health_watch="NVLINK", health_error_code=f"DCGM_FR_{_DOWN}",
         modelName="NVIDIA A100 80GB PCIe"): values((None, 10), (20, 25)),
}  # fmt: skip
_TRAFFIC = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
_BRIDGES = [
    Case("GPUHealthWarn", "a bridge that was used is lost",
         _BRIDGED | {dcgm(_TRAFFIC): values((900, 10), (0, 25))},
         {22: _alert_labels("NVLINK", _DOWN), 34: _alert_labels("NVLINK", _DOWN)}, (9, 18)),
    Case("GPUHealthWarn", "links are told to be down that never carried data",
         _BRIDGED | {dcgm(_TRAFFIC): "0x70"}, silent=_LONG),
    Case("GPUHealthFail", "a bridge that was used is lost: people look at it",
         _BRIDGED | {dcgm(_TRAFFIC): values((900, 10), (0, 25))}, silent=_LONG),
]  # fmt: skip


def _host(
    watch: str, code: str, text: str, model: str = _H100, of: Mapping[str, str] = G0
) -> dict[str, str]:
    """What the timer of a node with two GPUs leaves. + code: without DCGM_FR_"""
    labels = {"job": "node-exporter", "entity": "", **of, "health_watch": watch}
    card = {"modelName": model} if "UUID" in of else {}
    code = f"DCGM_FR_{code}" if code else ""
    healthy_labels = {
        **labels,
        **G1,
        "health_watch": "MEM",
        "health_error_code": "DCGM_FR_OK",
        **card,
    }
    result = {series(_HOST, **labels, health_error_code=code, **card): text}
    return result | ({series(_HOST, **healthy_labels): "0x70"} if card else {})


_NONE = {"node": "gpu1", "entity": "None 0"}
_SWITCH = {"node": "gpu1", "entity": "Switch 3"}


def _by_host(watch: str, code: str, of: Mapping[str, str] = G0) -> list[Mapping[str, str]]:
    return [
        {**of, "health_watch": watch} | ({"health_error_code": f"DCGM_FR_{code}"} if code else {})
    ]


_TWO_RESULTS = values((0, 10), (20, 20), (0, 10))
_PCIE = "NVIDIA A100 80GB PCIe"
_LINK_LOST = values((0, 10), (20, 30), (0, 10))
# the exporter, which has seen the bridge in use, is away for four minutes
_RESTARTED = {
    dcgm(_HEALTH, health_watch="NVLINK", health_error_code="DCGM_FR_OK", modelName=_PCIE):
        values((0, 10), (None, 1)),
    dcgm(_HEALTH, health_watch="NVLINK", health_error_code=f"DCGM_FR_{_DOWN}", modelName=_PCIE):
        values((None, 14), (20, 36)),
    dcgm(_TRAFFIC, modelName=_PCIE): values((900, 10), (None, 4), (0, 36)),
}  # fmt: skip
_ON_HOSTS = [
    *[
        Case(f"DCGMHealth{severity}", f"an answer of a card that is well: {code} of {model}",
             _host("NVLINK", code, "20x70", model, of), silent=_LONG)
        for severity in ("Fail", "Warn")
        for code, model, of in (
            (_CRITICAL, _H100, G0), (_DOWN, "NVIDIA A100 80GB PCIe", G0),
            ("IMEX_UNHEALTHY", "None 0", _NONE), ("FABRIC_PROBE_STATE", "Tesla T4", G0),
        )
    ],
    *[
        Case("DCGMHealthFail", f"{watch}: {code} of {model}",
             _host(watch, code, _TWO_RESULTS, model, of),
             {18: _by_host(watch, code, of), 29: _by_host(watch, code, of)}, (9, 16, 31))
        for watch, code, model, of in (
            ("MEM", "VOLATILE_DBE_DETECTED", _H100, G0),
            ("NVLINK", _CRITICAL, "NVIDIA GB300", G0),
            ("NVLINK", _DOWN, _H100, G0),
            ("NVLINK", "FABRIC_PROBE_STATE(state)", _H100, G0),
            ("NVSWITCH", "NVSWITCH_FATAL_ERROR", "Switch 3", _SWITCH),
        )
    ],
    Case("DCGMHealthFail", "errors of one moment are in one answer",
         _host("NVLINK", _CRITICAL, values((0, 10), (20, 5), (0, 30)), _B200), silent=(12, 15, 18)),
    *[
        Case("DCGMHealthWarn", f"{watch}: {code or 'a text that the table lacks'} of {model}",
             _host(watch, code, values((0, 10), (level, 30), (0, 10)), model, of),
             {23: _by_host(watch, code, of), 39: _by_host(watch, code, of)}, (9, 20, 41))
        for watch, code, level, model, of in (
            ("NVLINK", "IMEX_UNHEALTHY(state)", 20, "None 0", _NONE),
            ("NVLINK", "", 20, _H100, G0),
            ("MEM", "", 10, _H100, G0),
            ("PCIE", "PCI_REPLAY_RATE", 10, _H100, G0),
            ("NVSWITCH", "NVSWITCH_NON_FATAL_ERROR", 10, "Switch 3", _SWITCH),
        )
    ],
    Case("DCGMHealthFail", "a warning; heat and power, which have alerts of their own",
         _host("PCIE", "PCI_REPLAY_RATE", "10x40")
         | _host("THERMAL", "CLOCKS_EVENT_THERMAL", "20x40")
         | _host("POWER", "CLOCKS_EVENT_POWER", "20x40", of=G1), silent=(9, 19)),
    Case("DCGMHealthFail", "people look at a bridge that is lost; the exporter restarts",
         _RESTARTED | _host("NVLINK", _DOWN, _LINK_LOST, _PCIE), silent=_LONG, restart=True),
    Case("DCGMHealthWarn", "a bridge that was used is lost, and the exporter restarts",
         _RESTARTED | _host("NVLINK", _DOWN, _LINK_LOST, _PCIE),
         {23: _by_host("NVLINK", _DOWN), 39: _by_host("NVLINK", _DOWN)}, (9, 20, 41),
         restart=True),
]  # fmt: skip
CASES = [*_BRIDGES, *_SINCE_RESET, *_NO_LINKS, *_NOT_OURS, *_REAL, *_WARNED, *_ON_HOSTS]
