"""Memory, health, heat, power, clocks and links of a GPU."""

from __future__ import annotations

from tests.rules.model import G0, G1, HOLDER, STEP_S, Case, counter, dcgm, level, values

_NS = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_{}_NS"
_MINUTE = 60e9  # ns
_PCIE = {"health_watch": "PCIE", "health_error_code": "DCGM_FR_PCI_REPLAY_RATE"}
_MEM = {"health_watch": "MEM", "health_error_code": "DCGM_FR_UNCORRECTABLE_ROW_REMAP"}
_SLICE = {"GPU_I_ID": "2", "GPU_I_PROFILE": "3g.40gb"}
_SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
_HEALTH = "DCGM_EXP_GPU_HEALTH_STATUS"


def _throttle(alert: str, key: str, reason: str, low: float, high: float) -> list[Case]:
    """+ low, high: share of the time just within and beyond the limit"""
    cases = counter(
        alert, _NS.format(key), low=low * _MINUTE, high=high * _MINUTE, hold=5, reason=reason
    )
    return [
        Case(
            case.alert, f"{case.description} ({reason})", case.series, case.fires, case.silent,
            case.step, case.restart,
        )
        for case in cases
    ]  # fmt: skip


_MEMORY = [
    *level("GPUUncorrectableECC", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", bad=1, good=0),
    Case(
        "GPUUncorrectableECC",
        "a GPU that comes up with errors: no rise, and still an alert",
        {dcgm("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"): "2x40"},
        {1: [G0], 15: [G0]},
    ),
    *level("GPURowRemapFailure", "DCGM_FI_DEV_ROW_REMAP_FAILURE", bad=1, good=0),
    *level("GPURowRemapPending", "DCGM_FI_DEV_ROW_REMAP_PENDING", bad=1, good=0, hold=10),
    *[
        Case(
            alert,
            "under MIG the field says nothing, and an XID stands for it until the reset",
            {
                dcgm("DCGM_EXP_XID_ERRORS_TOTAL", xid=xid, **_SLICE):
                values((None, 20), (1, 40), (None, 20)),
                dcgm("DCGM_FI_DEV_SM_CLOCK", **_SLICE): "1980x200",
                dcgm("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", **_SLICE):
                values((1e9, 80, 6e6), (1e6, 20, 6e6)),
            },
            {20 + hold + 1: [G0], 59: [G0], 79: [G0]},
            (19, 82),
            restart=True,
        )
        for alert, xid, hold in (("GPURowRemapPending", "63", 10), ("GPURowRemapFailure", "64", 0),
                                 ("GPURowRemapUnseen", "94", 0))
    ],
    *[
        Case(
            alert,
            "a GPU that is not cut: its field decides, not the XID",
            {
                dcgm("DCGM_EXP_XID_ERRORS_TOTAL", xid=xid): "1x100",
                dcgm("DCGM_FI_DEV_SM_CLOCK"): "1980x100",
                dcgm("DCGM_FI_DEV_ROW_REMAP_PENDING"): "0x100",
                dcgm("DCGM_FI_DEV_ROW_REMAP_FAILURE"): "0x100",
            },
            silent=(20, 45),
        )
        for alert, xid in (("GPURowRemapPending", "63"), ("GPURowRemapFailure", "64"),
                           ("GPURowRemapUnseen", "94"))
    ],
    Case(
        "GPURowRemapUnseen",
        "cut into instances and well",
        {
            dcgm("DCGM_FI_DEV_SM_CLOCK", **_SLICE): "1980x100",
            dcgm("DCGM_EXP_XID_ERRORS_TOTAL", xid="31", **_SLICE): "1x100",
        },
        silent=(20, 45),
    ),
    *level("GPURemapBanksExhausted", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", bad=1, good=0),
    *level("GPURetiredPages", "DCGM_FI_DEV_RETIRED_PENDING", bad=1, good=0, hold=10),
    Case(
        "GPURetiredPages",
        "59 pages of both kinds, then 60",
        {
            dcgm("DCGM_FI_DEV_RETIRED_SBE"): values((50, 60)),
            dcgm("DCGM_FI_DEV_RETIRED_DBE"): values((9, 30), (10, 30)),
        },
        {45: [G0]},
        (25, 35),
    ),
    *level("GPUSramThreshold", "DCGM_FI_DEV_THRESHOLD_SRM", bad=1, good=0),
    *level("GPUMemoryUnrepairable", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", bad=1, good=0),
    Case(
        "GPUCorrectableECCRate",
        "1200 in a day, then none for a day",
        {dcgm(_SBE): values((0, 1440, 1), (1440, 2000), step=600)},
        {1430: [G0]},
        (900, 1040, 3000),
        step=600,
    ),
    Case(
        "GPUCorrectableECCRate",
        "800 in a day are not worth a word",
        {dcgm(_SBE): values((0, 2000, 0.5), step=600)},
        silent=(1500, 1900),
        step=600,
    ),
    Case(
        "GPUCorrectableECCRate",
        "a high count that is old; the exporter restarts and pods come and go",
        {
            dcgm(_SBE, **HOLDER): values((9000, 600), (None, 10), step=600),
            dcgm(_SBE): values((None, 620), (9000, 900), step=600),
        },
        silent=(500, 620, 700, 900),
        step=600,
        restart=True,
    ),
    Case(
        "GPURemappedRowsGrowing",
        "a second row within the week, and quiet a week after it",
        {dcgm("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "1x24 2x200"},
        {26 * 60: [G0], 100 * 60: [G0]},
        (23 * 60, 200 * 60),
        step=3600,
    ),
    Case(
        "GPURemappedRowsGrowing",
        "a row is remapped by a reboot, which numbers the GPUs differently",
        {
            dcgm("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "1x24 stale _x200",
            dcgm("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", {**G0, "gpu": "3"}): "_x25 2x200",
        },
        {27 * 60: [{**G0, "gpu": "3"}], 100 * 60: [{**G0, "gpu": "3"}]},
        (23 * 60, 200 * 60),
        step=3600,
        restart=True,
    ),
    Case(
        "GPURemappedRowsGrowing",
        "rows of last year; the exporter restarts, pods come and go, another GPU has more",
        {
            dcgm("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", **HOLDER): "3x24 stale _x100",
            dcgm("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "_x26 3x100",
            dcgm("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", G1): "7x126",
        },
        silent=(23 * 60, 27 * 60, 60 * 60),
        step=3600,
        restart=True,
    ),
]  # fmt: skip

_HEALTHY = [
    *level("GPUHealthFail", _HEALTH, bad=20, good=10, hold=2,
           labels=_PCIE, series_labels=_PCIE),
    Case(
        "GPUHealthFail",
        "heat and power have alerts of their own",
        {dcgm(_HEALTH, health_watch=watch): "20x40" for watch in ("THERMAL", "POWER")},
        silent=(10, 19),
    ),
    *level("GPUHealthWarn", _HEALTH, bad=10, good=0, hold=10,
           labels=_MEM, series_labels=_MEM),
    Case(
        "GPUHealthWarn",
        "DCGM remembers a program's XID 31 for ever, and a contained error",
        {
            dcgm(_HEALTH, health_watch="MEM", health_error_code="DCGM_FR_XID_ERROR"): "10x60",
            dcgm(_HEALTH, health_watch="ALL", health_error_code="DCGM_FR_CONTAINED_ERROR"): "10x60",
        },
        silent=(20, 29),
    ),
    Case(
        "GPUHealthWarn",
        "a failure is more than a warning",
        {dcgm(_HEALTH, health_watch="MEM", health_error_code="DCGM_FR_FAULTY_MEMORY"): "20x60"},
        silent=(20,),
    ),
    *level("GPUThermalMarginLow", "DCGM_FI_DEV_GPU_TEMP_LIMIT", bad=4, good=5, hold=5),
    *level("GPUMemoryHot", "DCGM_FI_DEV_MEMORY_TEMP", bad=96, good=95, hold=5,
           other_metrics={"DCGM_FI_DEV_MEM_MAX_OP_TEMP": 95}),
    Case(
        "GPUMemoryHot",
        "a GPU that knows no limit",
        {dcgm("DCGM_FI_DEV_MEMORY_TEMP"): "60x60", dcgm("DCGM_FI_DEV_MEM_MAX_OP_TEMP"): "0x60"},
        silent=(20,),
    ),
    *_throttle("GPUThermalThrottle", "HW_THERM_SLOWDOWN", "hw_thermal", 0.009, 0.2),
    *_throttle("GPUThermalThrottle", "SW_THERM_SLOWDOWN", "sw_thermal", 0.09, 0.9),
    Case(
        "GPUThermalThrottle",
        "an idle GPU: clocks are low, its bitmask says idle, no heat",
        {
            dcgm("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"): "1x100",
            dcgm(_NS.format("HW_THERM_SLOWDOWN")): "0x100",
            dcgm(_NS.format("SW_THERM_SLOWDOWN")): "0x100",
            dcgm(_NS.format("SW_POWER_CAP")): values((0, 50, _MINUTE)),
        },
        silent=(20, 45),
    ),
    *_throttle("GPUPowerBrake", "HW_POWER_BRAKE_SLOWDOWN", "power_brake", 0.009, 0.2),
    Case(
        "GPUPowerBrake",
        "the software power cap is normal under load",
        {dcgm(_NS.format("SW_POWER_CAP")): values((0, 50, _MINUTE))},
        silent=(20, 45),
    ),
    *level("GPUClockStuckLow", "DCGM_FI_DEV_SM_CLOCK", bad=900, good=990, hold=15,
           other_metrics={"DCGM_FI_DEV_MAX_SM_CLOCK": 1980, "DCGM_FI_PROF_SM_ACTIVE": 0.9}),
    *[
        Case(
            "GPUClockStuckLow",
            f"a T4 at its power limit of 70 W: 585 of 1590 MHz by design ({method})",
            {
                # telegraf, plugins/inputs/nvidia_smi/testdata/tesla-t4.xml
                dcgm("DCGM_FI_DEV_SM_CLOCK"): "585x100",
                dcgm("DCGM_FI_DEV_MAX_SM_CLOCK"): "1590x100",
                dcgm("DCGM_FI_PROF_SM_ACTIVE"): "0.9x100",
                **reasons,
            },
            silent=(20, 45),
        )
        for method, reasons in (
            ("counted time", {dcgm(_NS.format("SW_POWER_CAP")): values((0, 50, 0.9 * _MINUTE))}),
            ("bitmask, of drivers that count no time",
             {dcgm("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"): "4x100"}),
        )
    ],
    Case(
        "GPUClockStuckLow",
        "a clock that somebody has locked",
        {
            dcgm("DCGM_FI_DEV_SM_CLOCK"): "585x100",
            dcgm("DCGM_FI_DEV_MAX_SM_CLOCK"): "1590x100",
            dcgm("DCGM_FI_PROF_SM_ACTIVE"): "0.9x100",
            dcgm("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"): "2x100",
            dcgm(_NS.format("SW_POWER_CAP")): values((0, 50, 0.01 * _MINUTE)),
        },
        {20: [G0], 45: [G0]},
    ),
    Case(
        "GPUClockStuckLow",
        "an idle GPU clocks down: that is right",
        {
            dcgm("DCGM_FI_DEV_SM_CLOCK"): "345x100",
            dcgm("DCGM_FI_DEV_MAX_SM_CLOCK"): "1980x100",
            dcgm("DCGM_FI_PROF_SM_ACTIVE"): "0x100",
        },
        silent=(20, 45),
    ),
]  # fmt: skip

CASES = [*_MEMORY, *_HEALTHY]
assert STEP_S == 30  # the literal counts of samples above
