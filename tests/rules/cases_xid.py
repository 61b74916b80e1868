"""XIDs that are programs' faults, that come again and again, or that a person must judge."""

from __future__ import annotations

from tests.rules.cases_xid_fatal import CLOCK_SERIES, xid, xid_alerts
from tests.rules.model import G0, HOLDER, Case, dcgm, values

_CLOCK = "DCGM_FI_DEV_SM_CLOCK"


_SLICE = {"GPU_I_ID": "1", "GPU_I_PROFILE": "3g.40gb"}
_INSTANCE_2 = {"GPU_I_ID": "2", "GPU_I_PROFILE": "3g.40gb"}

_GAPS = [
    Case(
        "GPUXidApplication",
        f"nobody scraped for {gap} minutes, and nothing happened",
        {
            xid(31, **HOLDER): values((1, 40), (None, gap), (1, 30)),
            dcgm(_CLOCK): values((1980, 40), (None, gap), (1980, 30)),
        },
        silent=(30, *(40 + gap + half / 2 for half in range(-16, 50))),
    )
    for gap in (3, 7, 11, 60)
]

CASES = [
    *_GAPS,
    Case(
        "GPUXidApplication",
        "names the pod, and not the one that comes after it",
        {
            xid(31, **HOLDER): values((None, 20), (1, 4), (None, 1)),
            xid(31, **{**HOLDER, "pod": "next"}): values((None, 24), (1, 40)),
        }
        | CLOCK_SERIES,
        {
            21: xid_alerts(31, "none", namespace="ml", pod="train-0"),
            28: xid_alerts(31, "none", namespace="ml", pod="train-0"),
        },
        (19, 40),
    ),
    Case(
        "GPUXidApplication",
        "crashes over it and is gone: told once",
        {
            xid(31, **HOLDER): values((None, 20), (1, 1), (None, 1)),
            xid(31): values((None, 21), (1, 40)),
        }
        | CLOCK_SERIES,
        {
            21: xid_alerts(31, "none", namespace="ml", pod="train-0"),
            25: xid_alerts(31, "none", namespace="ml", pod="train-0"),
        },
        (19, 40),
    ),
    Case(
        "GPUXidApplication",
        "of no pod",
        {xid(31): values((None, 20), (1, 40))} | CLOCK_SERIES,
        {21: xid_alerts(31, "none"), 25: xid_alerts(31, "none")},
        (19, 40),
    ),
    Case(
        "GPUXidApplication",
        "a fault of the GPU is nobody's program, nor is what accompanies it",
        {xid(code, **HOLDER): values((None, 20), (1, 40)) for code in (43, 45, 48, 154, 171, 172)}
        | CLOCK_SERIES,
        silent=(21, 25),
    ),
    Case(
        "GPUXidApplication",
        "the exporter restarts: nothing new",
        {
            xid(13, **HOLDER): values((3, 30), (None, 10)),
            dcgm(_CLOCK): values((40, 30), (None, 1), (40, 30)),
        },
        silent=(29, 32, 40),
        restart=True,
    ),
    Case(
        "GPUXidApplication",
        "MIG: names the pod of the slice, and a first one is not hidden by another slice's",
        {
            xid(31, **_SLICE, **HOLDER): values((2, 60)),
            xid(31, **_INSTANCE_2, **{**HOLDER, "pod": "next"}): values((None, 20), (1, 40)),
        }
        | CLOCK_SERIES,
        {21: xid_alerts(31, "none", **_INSTANCE_2, namespace="ml", pod="next")},
        (19, 40),
    ),
    Case(
        "GPUXidApplication",
        "three pods share the GPU by time: each is told",
        {xid(31, **{**HOLDER, "pod": pod}): values((None, 20), (1, 40)) for pod in "abc"}
        | CLOCK_SERIES,
        {21: [alert for pod in "abc" for alert in xid_alerts(31, "none", namespace="ml", pod=pod)]},
        (19, 40),
    ),
    Case(
        "GPUXidRepeated",
        "six incidents in a day, of any class; a day later they are forgotten",
        {xid(31): "0x10 1x5 2x5 3x5 4x5 5x5 6x1600", dcgm(_CLOCK): "1980x2000"},
        {70: [G0], 1400: [G0]},
        (30, 1500),
        step=60,
    ),
    Case(
        "GPUXidRepeated",
        "two crashes, of which each logs three XID 13 and a 109, are two incidents",
        {
            xid(13): values((None, 10), (3, 20), (6, 60)),
            xid(109): values((None, 10.5), (1, 20), (2, 60)),
            xid(43): values((None, 11), (4, 20), (8, 60)),
        }
        | CLOCK_SERIES,
        silent=(15, 35, 80),
    ),
    Case(
        "GPUXidRepeated",
        "jobs that are killed, one after the other (45), and what accompanies (154)",
        {xid(45): values((0, 60, 0.1), (6, 60, 0.2)), xid(154): values((0, 120, 0.1))}
        | CLOCK_SERIES,
        silent=(30, 100, 119),
    ),
    Case(
        "GPUXidRepeated",
        "MIG: incidents of all slices are the GPU's",
        {
            xid(31, **_SLICE): "0x10 1x5 1x5 2x5 2x5 3x5 3x60",
            xid(31, **_INSTANCE_2): "0x10 0x5 1x5 1x5 2x5 2x5 3x60",
            dcgm(_CLOCK, **_SLICE): "1980x120",
        },
        {60: [G0]},
        (30,),
        step=60,
    ),
    Case(
        "GPUXidRepeated",
        "restarts of the exporter do not multiply them",
        {
            xid(31): "0x10 2x20 stale _x5 1x20 stale _x5 1x30",
            dcgm(_CLOCK): "1980x31 stale _x5 1980x20 stale _x5 1980x30",
        },
        silent=(30, 50, 80),
        step=60,
        restart=True,
    ),
    Case(
        "GPUXidInspect",
        "a code for a person, and one that nobody knows",
        {xid(54): values((None, 20), (1, 40)), xid(199): values((None, 20), (1, 40))}
        | CLOCK_SERIES,
        {
            minute: [*xid_alerts(54, "investigate"), *xid_alerts(199, "investigate")]
            for minute in (21, 55)
        },
        (19,),
    ),
    Case(
        "GPUXidInspect",
        "power smoothing goes off and comes back; a PCIe timeout",
        {xid(code): values((None, 20), (1, 40)) for code in (162, 163, 167)} | CLOCK_SERIES,
        {21: [*xid_alerts(163, "investigate"), *xid_alerts(167, "investigate")]},
        (19,),
    ),
    Case(
        "GPUXidInspect",
        "NVLink 5 without its sub-code, on two slices: told once",
        {xid(149, **_SLICE): values((None, 20), (1, 40)),
         xid(149, **_INSTANCE_2): values((None, 20), (1, 40)), dcgm(_CLOCK, **_SLICE): "1980x200"},
        {21: xid_alerts(149, "investigate"), 55: xid_alerts(149, "investigate")},
        (19,),
    ),
    Case(
        "GPUXidInspect",
        "codes with a class have alerts of their own, or none",
        {xid(code): values((None, 20), (1, 40)) for code in (13, 45, 48, 63, 74, 79, 154)}
        | CLOCK_SERIES
        | {xid(code): values((None, 20), (1, 40)) for code in (43, 159, 162, 171, 172)},
        silent=(21, 25),
    ),
    Case(
        "GPUXidInspect",
        "the exporter restarts, and later the driver is loaded again",
        {
            xid(54): values((1, 30), (None, 10)),
            dcgm(_CLOCK): values((40, 30), (None, 1), (40, 30)),
            dcgm("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"): values((1e9, 50, 6e6), (1e6, 20, 6e6)),
        },
        dict.fromkeys((29, 31, 33, 49), xid_alerts(54, "investigate")),
        (52, 60),
        restart=True,
    ),
]  # fmt: skip
