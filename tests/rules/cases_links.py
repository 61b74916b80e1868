"""NVLink, its fabric, and PCIe."""

from __future__ import annotations

from typing import Any

from tests.rules.model import G0, G1, HOLDER, STEP_S, Case, counter, dcgm, level, series, values

_WIDTH, _GEN = "DCGM_FI_DEV_PCIE_LINK_WIDTH", "DCGM_FI_DEV_PCIE_LINK_GEN"
_MAX_WIDTH = "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"
_REPLAYS = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"

_LINKS = [
    *counter("GPUNvlinkErrors", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
              low=0.2, high=1, hold=5),
    Case(
        "GPUNvlinkErrors",
        "recoveries count as well",
        {dcgm("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): values((0, 10), (0, 20, 1))},
        {25: [G0]},
        (9,),
    ),
    Case(
        "GPUNvlinkErrors",
        "a single replay",
        {dcgm("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"): values((7, 10), (8, 30))},
        silent=(12, 14, 20),
    ),
    *counter("GPUNvlinkCrcErrors", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
              low=99 * 60, high=900 * 60, hold=5),
    *level("GPUFabricNotReady", "DCGM_FI_DEV_FABRIC_MANAGER_STATUS", bad=2, good=3, hold=10),
    Case(
        "GPUFabricNotReady",
        "a GPU without a fabric",
        {dcgm("DCGM_FI_DEV_FABRIC_MANAGER_STATUS"): "0x60"},
        silent=(25,),
    ),
    Case(
        "GPUFabricNotReady",
        "a driver that is too old to tell",
        {dcgm("DCGM_FI_DEV_FABRIC_MANAGER_STATUS"): "6x60"},
        silent=(25,),
    ),
]  # fmt: skip


_HOUR = 60
_PCIE = [
    # GetExpectedPcieReplayRate of DCGM 4.6.0 (modules/health/DcgmHealthWatch.cpp:1519): for each
    # lane 0.15, 0.3, 0.48, 0.96, 1.92, 3.84 a minute, by generation, rounded up
    *(
        Case(**{**vars(case), "description": f"gen{gen} x{lanes}: {case.description}"})
        for gen, lanes, allowed in ((1, 16, 3), (3, 16, 8), (3, 8, 4), (4, 16, 16), (5, 16, 31),
                                    (6, 16, 62), (7, 16, 62))
        for case in counter("GPUPcieReplay", _REPLAYS, low=allowed * 0.96, high=allowed * 1.3,
                            hold=10, other_metrics={_GEN: gen, _WIDTH: lanes})
    ),
    Case(
        "GPUPcieReplay",
        "a GPU whose link nobody reports",
        {dcgm(_REPLAYS): values((0, 60, 100))},
        silent=(40,),
    ),
    Case(
        "GPUPcieWidthDegraded",
        "half the lanes after a reboot, until it is reseated; pods come and go",
        {
            dcgm(_WIDTH): values((16, 30), (None, 3), (8, 20), (None, 60), (16, 20)),
            dcgm(_WIDTH, **HOLDER): values((None, 53), (8, 60), (None, 20)),
            dcgm(_GEN): "5x400",
        },
        {49: [G0], 60: [G0], 110: [G0]},
        (29, 47, 115),
        restart=True,
    ),
    Case(
        "GPUPcieWidthDegraded",
        "it stays so for days",
        {dcgm(_WIDTH): "16x5 8x240", dcgm(_GEN): "4x300"},
        {8 * _HOUR: [G0], 200 * _HOUR: [G0]},
        step=3600,
    ),
    Case(
        "GPUPcieWidthDegraded",
        "AWS g4dn and g5: the GPU says x16, and has x8 by design",
        {
            dcgm(_WIDTH): "8x400",
            dcgm(_MAX_WIDTH): "16x400",
            dcgm(_GEN): "3x400",
            dcgm("DCGM_FI_PROF_GR_ENGINE_ACTIVE"): "1x400",
        },
        silent=(30, 190),
    ),
    Case(
        "GPUPcieWidthDegraded",
        "an idle GPU saves power, with lanes and generation",
        {
            dcgm(_WIDTH): values((16, 30), (4, 60), (16, 20)),
            dcgm(_GEN): values((4, 30), (1, 60), (4, 20)),
            dcgm("DCGM_FI_DEV_GPU_UTIL"): values((90, 30), (0, 60), (90, 20)),
        },
        silent=(50, 80, 100),
    ),
    Case(
        "GPUPcieWidthDegraded",
        "lanes and generation are fewer while the GPU works: that is no saving",
        {
            dcgm(_WIDTH): values((16, 30), (4, 60), (16, 20)),
            dcgm(_GEN): values((4, 30), (1, 60), (4, 20)),
            dcgm("DCGM_FI_DEV_GPU_UTIL"): "90x400",
        },
        {50: [G0], 80: [G0]},
        (29, 100),
    ),
    Case(
        "GPUPcieWidthDegraded",
        "the GPU moves to a slot with fewer lanes",
        {
            dcgm(_WIDTH): values((16, 30), (None, 5)),
            dcgm(_WIDTH, pci_bus_id="00000000:81:00.0"): values((None, 33), (8, 60)),
            dcgm(_GEN): values((4, 30), (None, 5)),
            dcgm(_GEN, pci_bus_id="00000000:81:00.0"): values((None, 33), (4, 60)),
        },
        silent=(50, 80),
        restart=True,
    ),
    Case(
        "GPUPcieWidthDegraded",
        "DCGM's mark for no value",
        {dcgm(_WIDTH): values((16, 30), (9223372036854775794, 30), (16, 30)), dcgm(_GEN): "5x400"},
        silent=(50, 65, 80),
    ),
]  # fmt: skip

_MOST_GEN, _UTIL = "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "DCGM_FI_DEV_GPU_UTIL"
_BUSY = {dcgm(_UTIL): "90x400"}


def _speed(
    description: str, gen: str, max_gen: float, other_series: dict[str, str], **extra: Any
) -> Case:
    series = {dcgm(_GEN): gen, dcgm(_MOST_GEN): f"{max_gen}x400"}
    return Case("GPUPcieSpeedDegraded", description, series | other_series, **extra)


_SPEED = [
    _speed("generation 1 of 5 since ever, until it is reseated",
           values((1, 40), (None, 3), (5, 40)), 5, _BUSY,
           fires={20: [G0], 39: [G0]}, silent=(14, 49, 60), restart=True),
    _speed("generation 3 of 5: a quarter of the speed", "3x100", 5, _BUSY, fires={20: [G0]}),
    _speed("generation 4 of 5, as a riser or a virtual machine has it", "4x100", 5, _BUSY,
           silent=(20, 45)),
    _speed("one generation less than before", values((5, 30), (4, 60), (5, 20)), 5, _BUSY,
           fires={55: [G0], 89: [G0]}, silent=(29, 49, 92)),
    _speed("it goes on while pods come and go, and the exporter restarts",
           values((5, 20), (2, 40), (None, 3), (2, 40)), 5, _BUSY,
           fires={45: [G0], 59: [G0], 64: [G0]}, silent=(19,), restart=True),
    _speed("a slot, or a laptop, that can do no more", "3x100", 3, _BUSY, silent=(20, 45)),
    _speed("an idle GPU saves power", values((1, 60), (4, 20)), 4, {dcgm(_UTIL): "0x60 90x40"},
           silent=(20, 59, 75)),
    _speed("a GPU that waits for its data is no idle one", "1x100", 5,
           {dcgm(_UTIL): "2x100", dcgm("DCGM_FI_PROF_PCIE_RX_BYTES"): "3.5e9x100"},
           fires={25: [G0]}),
    _speed("the link of a GPU that works now and then, faster while it does",
           "1x3 5x1 1x4 5x1 1x4 5x1 1x4 5x1 1x4 5x1 1x4 5x1 1x4 5x1 1x4 5x1 1x4 5x1 1x4", 5,
           {dcgm(_UTIL): "0x3 90x1 0x4 90x1 0x4 90x1 0x4 90x1 0x4 90x1 0x4 90x1 0x4 90x1 0x4"},
           silent=(10, 20, 25)),
    _speed("DCGM's mark for no value", "9223372036854775794x60", 9223372036854775794, _BUSY,
           silent=(20, 29)),
    _speed("the most is not known, and it was never faster", "1x60", 9223372036854775794, _BUSY,
           silent=(20, 29)),
]  # fmt: skip

_SXID = "gpuboot_nvswitch_fatal_timestamp_seconds"
_HOST = {"job": "node-exporter", "instance": "10.0.0.1:9100"}


def _error(sxid: int, text: str) -> dict[str, str]:
    """When it was, in seconds of promtool's clock, which begins at 0."""
    labels = {**_HOST, "node": "gpu1", "switch": "nvswitch0", "sxid": str(sxid)}
    return {series(_SXID, **labels): text}


def _fatal(sxid: int, action: str) -> list[dict[str, str]]:
    return [{"node": "gpu1", "switch": "nvswitch0", "sxid": str(sxid), "gpu_action": action}]


_FATAL = _fatal(20034, "reset")


def _energy(*resets: float) -> dict[str, str]:
    """Counters of energy of the node's GPUs, each with the minute at which it is reset.

    As node-exporter tells, the host booted at 0.
    """
    energy_by_device = {
        series("node_boot_time_seconds", **_HOST, node="gpu1"): "0x400",
        series("node_time_seconds", **_HOST, node="gpu1"): "0+30x400",
    }
    for number, minute in enumerate(resets):
        gpu = (G0, G1)[number]
        rises = 6e6  # mJ a minute, at 100 W
        before = (9e8, min(minute, 100), rises)
        course = values(before, (1e6, 60, rises)) if minute < 100 else values(before)
        energy_by_device[dcgm(_ENERGY, gpu)] = course
        energy_by_device[dcgm("DCGM_FI_DEV_SM_CLOCK", gpu)] = "1980x300"
    return energy_by_device


_SWITCHES = [
    Case("NVSwitchFatalError", "a link's training fails; the node is rebooted an hour later",
         _error(20034, values((None, 10), (600, 60), (None, 30))),
         {11: _fatal(20034, "reset"), 69: _fatal(20034, "reset")}, (9, 75)),
    Case("NVSwitchFatalError", "one that only a reboot ends, and nobody reboots for days",
         _error(12020, "0x300"), {60: _fatal(12020, "reboot"), 23 * 60: _fatal(12020, "reboot")},
         (25 * 60,), step=600),
    Case("NVSwitchFatalError", "all GPUs are reset half an hour later, and the driver stays loaded",
         _error(20034, values((None, 10), (600, 80))) | _energy(40, 40), {11: _FATAL, 39: _FATAL},
         (42, 60, 85)),
    Case("NVSwitchFatalError", "one of two GPUs is reset, which resets no switch",
         _error(20034, values((None, 10), (600, 80))) | _energy(40, 200),
         {39: _FATAL, 45: _FATAL, 80: _FATAL}),
    Case("NVSwitchFatalError", "all are reset, and it is one that only a reboot ends",
         _error(12020, values((None, 10), (600, 80))) | _energy(40, 40),
         {39: _fatal(12020, "reboot"), 60: _fatal(12020, "reboot")}),
    Case("NVSwitchFatalError", "the exporter is restarted, which repairs nothing",
         _error(20034, values((None, 10), (600, 80))) | _energy(200, 200) | {
             dcgm(metric, gpu): values((9e8, 20, 6e6), (None, 3), (9e8 + 23 * 6e6, 60, 6e6))
             for metric in (_ENERGY, "DCGM_FI_DEV_SM_CLOCK") for gpu in (G0, G1)},
         {20: _FATAL, 26: _FATAL, 40: _FATAL}, restart=True),
    Case("NVSwitchFatalError", "it comes again after the reset",
         _error(20034, values((None, 10), (600, 40), (3000, 40))) | _energy(40, 40),
         {39: _FATAL, 51: _FATAL, 80: _FATAL}, (45,)),
    Case("NVSwitchFatalError", "one of last week, on a host whose clock is a day slow",
         _error(20034, "-691200x40")
         | {series("node_time_seconds", **_HOST): "-86400+30x40"}, silent=(5, 15)),
    Case("NVSwitchFatalError", "new, on a host whose clock is a week slow",
         _error(20034, "-604800x40")
         | {series("node_time_seconds", **_HOST): "-604800+30x40"},
         {5: _fatal(20034, "reset")}),
]  # fmt: skip

CASES = [*_SWITCHES, *_LINKS, *_PCIE, *_SPEED]
assert STEP_S == 30  # the literal counts of samples above
