"""XIDs from which a GPU does not recover by itself: from the first line until the repair is seen.

The exporter starts its counters at 0: dcgm-exporter 4.8.3, docs ("cumulative XID errors observed
since exporter start"). Its restart is no repair: tests/rules/cases_repaired.py.
"""

from __future__ import annotations

from tests.rules.model import G0, G1, HOLDER, Case, dcgm, up, values

_XID = "DCGM_EXP_XID_ERRORS_TOTAL"
_CLOCK = "DCGM_FI_DEV_SM_CLOCK"
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_ACTION = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"
_DAY = 1440
CLOCK_SERIES = {dcgm(_CLOCK): "1980x400"}


def xid(code: int, **labels: str) -> str:
    return dcgm(_XID, xid=str(code), **labels)


def xid_alerts(code: int, action: str = "reset", **labels: str) -> list[dict[str, str]]:
    return [{**G0, "xid": str(code), "gpu_action": action, **labels}]


def _clock(*parts: tuple[float | None, float], of: dict[str, str] = G0) -> dict[str, str]:
    return {dcgm(_CLOCK, of): values(*parts)}


_FIRST = [
    Case(
        "GPUXidFatal",
        "a memory error with all that accompanies it: one alert",
        {xid(code): values((None, 20), (1, 40)) for code in (43, 45, 48, 63, 154, 171, 172)}
        | CLOCK_SERIES,
        {21: xid_alerts(48), 55: xid_alerts(48)},
        (19,),
    ),
    Case(
        "GPUXidFatal",
        "the first XID of a code: the series is born at 1, and nobody repairs it",
        {xid(48): values((None, 20), (1, 100))} | CLOCK_SERIES,
        {21: xid_alerts(48), 40: xid_alerts(48), 110: xid_alerts(48)},
        (19,),
    ),
    Case(
        "GPUXidFatal",
        "a GPU that fell off the bus wants a reboot; the exporter goes on without it",
        {xid(79): values((None, 20), (1, 100)), **_clock((1980, 20), (None, 100)), up(): "1x240"},
        {21: xid_alerts(79, "reboot"), 110: xid_alerts(79, "reboot")},
        (19,),
    ),
    Case(
        "GPUXidFatal",
        "119 every twelve minutes is one alert",
        {xid(119): values((None, 10), (1, 12), (2, 12), (3, 12), (4, 30))} | CLOCK_SERIES,
        {minute: xid_alerts(119) for minute in (11, 21.5, 33.5, 45, 70)},
        (9,),
    ),
    Case(
        "GPUXidFatal",
        "a program's own fault is none of it; nor is NVLink 5 without its sub-code",
        {xid(code): values((None, 20), (1, 40)) for code in (31, 94, 144, 149)} | CLOCK_SERIES,
        silent=(21, 25),
    ),
    Case(
        "GPUXidFatal",
        "MIG: the first of one slice is not hidden by an old one of another; the GPU is told once",
        {
            xid(95, GPU_I_ID="1", GPU_I_PROFILE="3g.40gb"): "_x2 1x398",
            xid(95, GPU_I_ID="2", GPU_I_PROFILE="3g.40gb"): f"_x{26 * 12} 1x80",
            dcgm(_CLOCK, GPU_I_ID="1", GPU_I_PROFILE="3g.40gb"): "1980x400",
        },
        {60: xid_alerts(95), 26 * 60 + 5: xid_alerts(95)},
        (25 * 60,),
        step=300,
    ),
    Case(
        "GPUXidFatal",
        "the GPU goes to the next pod: the same XID, and no second one",
        {
            xid(48, **HOLDER): values((1, 30), (None, 1)),
            xid(48, **{**HOLDER, "pod": "next"}): values((None, 30), (1, 40)),
        }
        | CLOCK_SERIES,
        {29: xid_alerts(48), 31: xid_alerts(48), 45: xid_alerts(48)},
    ),
    Case(
        "GPUXidFatal",
        "a day after its last line it ends, whatever was done",
        {xid(48): "_x4 1x400", dcgm(_CLOCK): "1980x400"},
        {30: xid_alerts(48), 20 + _DAY - 5: xid_alerts(48)},
        (15, 20 + _DAY + 10),
        step=300,
    ),
]  # fmt: skip

_REPAIRS = [
    Case(
        "GPUXidFatal",
        "a reset: the exporter restarts, and the GPU is well",
        {xid(48): values((None, 20), (1, 20), (None, 1)),
         **_clock((1980, 40), (None, 5), (1980, 30)),
         dcgm(_ACTION): values((0, 20), (1, 20), (None, 5), (0, 30))},
        {39: xid_alerts(48), 43: xid_alerts(48)},
        (19, 46, 60),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "the exporter restarts and nothing was repaired: the driver still asks for a reset",
        {xid(119): values((None, 20), (1, 20), (None, 1)),
         **_clock((1980, 40), (None, 1), (1980, 90)),
         dcgm(_ACTION): values((0, 20), (1, 20), (None, 1), (1, 90))},
        {39: xid_alerts(119), 42: xid_alerts(119), 60: xid_alerts(119), 120: xid_alerts(119)},
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "an older driver that asks for nothing: DCGM's verdict and memory errors stand for it",
        {xid(48): values((None, 20), (1, 20), (None, 1)),
         **_clock((1980, 40), (None, 1), (1980, 90)),
         dcgm("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"):
         values((0, 20), (1, 20), (None, 1), (1, 40), (0, 50))},
        {60: xid_alerts(48), 80: xid_alerts(48)},
        (82,),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "the exporter restarts without the GPU that fell off the bus, until the node reboots",
        {xid(79): values((None, 20), (1, 20), (None, 1)), up(): values((1, 40), (0, 1), (1, 90)),
         **_clock((1980, 20), (None, 60), (1980, 50)),
         **_clock((1980, 40), (None, 1), (1980, 90), of=G1)},
        {45: xid_alerts(79, "reboot"), 79: xid_alerts(79, "reboot")},
        (82,),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "the GPU is exchanged for another one: the node has all its GPUs",
        {xid(79): values((None, 20), (1, 20), (None, 1)),
         **_clock((1980, 20), (None, 100)),
         **_clock((1980, 20), (None, 40), (1980, 40), of=G1),
         **_clock((None, 60), (1980, 40), of={**G0, "UUID": "GPU-new"})},
        {45: xid_alerts(79, "reboot"), 59: xid_alerts(79, "reboot")},
        (62, 90),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "once repaired it stays so, also when the exporter is gone later",
        {xid(48): values((None, 20), (1, 20), (None, 1)),
         dcgm(_ACTION): values((0, 20), (1, 20), (None, 1), (0, 20), (None, 20), (0, 20)),
         **_clock((1980, 40), (None, 1), (1980, 20), (None, 20), (1980, 20))},
        {39: xid_alerts(48)},
        (45, 60, 62, 79, 85),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "the first after the exporter has restarted, of a code that was there before",
        {xid(48): values((1, 60), (None, 30), (1, 40)),
         dcgm(_ENERGY): values((9e9, 60), (None, 2), (1e6, 70, 6e6)),
         **_clock((1980, 60), (None, 2), (1980, 70))},
        {59: xid_alerts(48), 91: xid_alerts(48), 120: xid_alerts(48)},
        (65, 89),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "the exporter restarts and counts another one at once",
        {xid(48): values((4, 60), (None, 1), (1, 30)),
         **_clock((1980, 60), (None, 1), (1980, 30))},
        {59: xid_alerts(48), 62: xid_alerts(48), 75: xid_alerts(48)},
        restart=True,
    ),
]  # fmt: skip

_GAPS = [
    Case(
        "GPUXidFatal",
        "nobody scraped for an hour and one was counted meanwhile",
        {xid(48): "1x300 stale _x11 2x24", dcgm(_CLOCK): "1980x300 stale _x11 1980x24"},
        {301 * 5 + 65: xid_alerts(48), 301 * 5 + 110: xid_alerts(48)},
        (300 * 5,),
        step=300,
    ),
    Case(
        "GPUXidFatal",
        "the first one ever, while nobody scraped",
        {xid(48): values((None, 120), (1, 40)), **_clock((1980, 60), (None, 60), (1980, 40))},
        {121: xid_alerts(48), 135: xid_alerts(48)},
        (119,),
    ),
]

CASES = [*_FIRST, *_REPAIRS, *_GAPS]
