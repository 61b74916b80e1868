"""XIDs: the first of its code, more of them, restarts, gaps, pods that change."""

from __future__ import annotations

from tests.rules.model import G0, HELD, Case, dcgm, values

_XID = "DCGM_EXP_XID_ERRORS_TOTAL"
_TEMP = {dcgm("DCGM_FI_DEV_GPU_TEMP"): "40x400"}


def _xid(code: int, **more: str) -> str:
    return dcgm(_XID, xid=str(code), **more)


def _said(code: int, action: str = "reset", **more: str) -> list[dict[str, str]]:
    return [{**G0, "xid": str(code), "gpu_action": action, **more}]


CASES = [
    Case(
        "GPUXidFatal",
        "the first XID of a code: the series is born at 1",
        {_xid(48): values((None, 20), (1, 40))} | _TEMP,
        {21: _said(48), 29: _said(48)},
        (19, 32, 50),
    ),
    Case(
        "GPUXidFatal",
        "a GPU that fell off the bus wants a reboot",
        {_xid(79): values((None, 20), (1, 40))} | _TEMP,
        {21: _said(79, "reboot")},
        (32,),
    ),
    Case(
        "GPUXidFatal",
        "another one of the same code, much later",
        {_xid(119): values((1, 60), (2, 30))} | _TEMP,
        {61: _said(119), 68: _said(119)},
        (59, 72),
    ),
    Case(
        "GPUXidFatal",
        "a program's own fault is none of it",
        {_xid(31): values((None, 20), (1, 40)), _xid(94): values((None, 20), (1, 40))} | _TEMP,
        quiet=(21, 25),
    ),
    Case(
        "GPUXidFatal",
        "the first after the exporter has restarted, of a code that was there before",
        {
            _xid(48): values((1, 60), (None, 30), (1, 40)),
            dcgm("DCGM_FI_DEV_GPU_TEMP"): values((40, 60), (None, 2), (40, 70)),
        },
        {91: _said(48), 99: _said(48)},
        (59, 63, 89, 102),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "the exporter restarts and counts another one at once",
        {
            _xid(48): values((4, 60), (None, 1), (1, 30)),
            dcgm("DCGM_FI_DEV_GPU_TEMP"): values((40, 60), (None, 1), (40, 30)),
        },
        {62: _said(48)},
        (59, 75),
        restart=True,
    ),
    Case(
        "GPUXidFatal",
        "nobody scraped for an hour and nothing happened",
        {
            _xid(48): values((1, 60), (None, 60), (1, 40)),
            dcgm("DCGM_FI_DEV_GPU_TEMP"): values((40, 60), (None, 60), (40, 40)),
        },
        quiet=(59, 121, 125, 131, 140),
    ),
    Case(
        "GPUXidFatal",
        "nobody scraped for an hour and one was counted meanwhile",
        {
            _xid(48): values((1, 60), (None, 60), (2, 40)),
            dcgm("DCGM_FI_DEV_GPU_TEMP"): values((40, 60), (None, 60), (40, 40)),
        },
        {121: _said(48), 128: _said(48)},
        (59, 135),
    ),
    Case(
        "GPUXidFatal",
        "the first one ever, while nobody scraped",
        {
            _xid(48): values((None, 120), (1, 40)),
            dcgm("DCGM_FI_DEV_GPU_TEMP"): values((40, 60), (None, 60), (40, 40)),
        },
        {121: _said(48)},
        (119, 135),
    ),
    Case(
        "GPUXidFatal",
        "the GPU goes to the next pod: no new XID",
        {
            _xid(48, **HELD): values((1, 30), (None, 1)),
            _xid(48, **{**HELD, "pod": "next"}): values((None, 30), (1, 40)),
        }
        | _TEMP,
        quiet=(31, 35, 45),
    ),
    Case(
        "GPUXidApplication",
        "names the pod, and not the one that comes after it",
        {
            _xid(31, **HELD): values((None, 20), (1, 4), (None, 1)),
            _xid(31, **{**HELD, "pod": "next"}): values((None, 24), (1, 40)),
        }
        | _TEMP,
        {
            21: _said(31, "none", namespace="ml", pod="train-0"),
            28: _said(31, "none", namespace="ml", pod="train-0"),
        },
        (19, 40),
    ),
    Case(
        "GPUXidApplication",
        "crashes over it and is gone: told once",
        {
            _xid(31, **HELD): values((None, 20), (1, 1), (None, 1)),
            _xid(31): values((None, 21), (1, 40)),
        }
        | _TEMP,
        {
            21: _said(31, "none", namespace="ml", pod="train-0"),
            25: _said(31, "none", namespace="ml", pod="train-0"),
        },
        (19, 40),
    ),
    Case(
        "GPUXidApplication",
        "of no pod",
        {_xid(31): values((None, 20), (1, 40))} | _TEMP,
        {21: _said(31, "none"), 25: _said(31, "none")},
        (19, 40),
    ),
    Case(
        "GPUXidApplication",
        "a fault of the GPU is nobody's program",
        {_xid(48, **HELD): values((None, 20), (1, 40))} | _TEMP,
        quiet=(21, 25),
    ),
    Case(
        "GPUXidApplication",
        "the exporter restarts: nothing new",
        {
            _xid(13, **HELD): values((3, 30), (None, 10)),
            dcgm("DCGM_FI_DEV_GPU_TEMP"): values((40, 30), (None, 1), (40, 30)),
        },
        quiet=(29, 32, 40),
        restart=True,
    ),
    Case(
        "GPUXidRepeated",
        "six in a day, of any class",
        {_xid(31): "0x10 1x5 2x5 3x5 4x5 5x5 6x60"},
        {70: [G0]},
        (30,),
        step=60,
    ),
    Case(
        "GPUXidRepeated",
        "five of two codes, which is still allowed, and resolved a day after too many",
        {
            _xid(31): "0x10 3x30 8x1500",
            _xid(13): "0x10 2x1530",
        },
        {80: [G0]},
        (30, 1500),
        step=60,
    ),
    Case(
        "GPUXidRepeated",
        "restarts of the exporter do not multiply them",
        {_xid(31): "0x10 2x20 stale _x5 1x20 stale _x5 1x30"},
        quiet=(30, 50, 80),
        step=60,
        restart=True,
    ),
    Case(
        "GPUXidInspect",
        "a code for a person, and one that nobody knows",
        {_xid(54): values((None, 20), (1, 40)), _xid(171): values((None, 20), (1, 40))} | _TEMP,
        {21: [*_said(54, "investigate"), *_said(171, "investigate")]},
        (19, 32),
    ),
    Case(
        "GPUXidInspect",
        "codes with a class have alerts of their own, or none",
        {_xid(code): values((None, 20), (1, 40)) for code in (13, 45, 48, 63, 74, 79, 154)} | _TEMP,
        quiet=(21, 25),
    ),
    Case(
        "GPUXidInspect",
        "the exporter restarts",
        {
            _xid(54): values((1, 30), (None, 10)),
            dcgm("DCGM_FI_DEV_GPU_TEMP"): values((40, 30), (None, 1), (40, 30)),
        },
        quiet=(29, 32, 40),
        restart=True,
    ),
]  # fmt: skip
