"""What timers on GPU nodes learn of DCGM's host engine: verdicts, and that there are none."""

from __future__ import annotations

from collections.abc import Mapping

from tests.rules.model import G0, G1, Case, series, values

_SCRAPED = {"job": "node-exporter", "instance": "10.0.0.1:9100"}
_DAY_MIN = 24 * 60


def _verdict(kind: str, of: Mapping[str, str], text: str, **extra: str) -> dict[str, str]:
    labels = {**_SCRAPED, "entity": "", **of, **extra}  # an empty label is none
    return {series(f"gpuboot_dcgm_{kind}", **labels): text}


def _checked(kind: str, gpu1: str, gpu2: str) -> dict[str, str]:
    """When an answer came, in seconds of promtool's clock, which begins at 0."""
    metric = f"gpuboot_dcgm_{kind}_timestamp_seconds"
    return {
        series(metric, **_SCRAPED, node=node): text
        for node, text in (("gpu1", gpu1), ("gpu2", gpu2))
    }


_SOFTWARE = [{**G1, "test": "software"}]
_HEALTH = [{"node": "gpu1", "check": "health"}]
_DIAG = [{"node": "gpu1", "check": "diag"}]
CASES = [
    Case("DCGMDiagFail", "one GPU fails, until the next day's",
         _verdict("diag", G1, values((0, 10), (20, 20), (0, 10)), test="software")
         | _verdict("diag", G0, "0x80", test="software"),
         {13: _SOFTWARE, 29: _SOFTWARE}, (9, 11.5, 31)),
    Case("DCGMDiagFail", "a warning: a mere setting of the node",
         _verdict("diag", G0, "10x40", test="software"), silent=(5, 19)),
    Case("DCGMCheckStale", "the engine hangs for two hours",
         _checked("health", "0+300x12 3600x24 10800+300x20", "0+300x60")
         | _checked("diag", "0x60", "0x60"),
         {2 * 60: _HEALTH, 175: _HEALTH}, (60, 95, 190), step=300),
    Case("DCGMCheckStale", "never asked, until minute 60",
         _checked("health", values((None, 60), (3600, 40)), "0+30x200"),
         {20: _HEALTH, 59: _HEALTH}, (14, 61)),
    Case("DCGMCheckStale", "no diagnosis for two days",
         _checked("health", "0+1800x100", "0+1800x100") | _checked("diag", "0x96 172800x4",
         "0x48 86400x52"),
         {31 * 60: _DIAG, 47 * 60: _DIAG}, (29 * 60, 48.5 * 60), step=1800),
    Case("DCGMCheckStale", "asked every five minutes, diagnosed once a day",
         _checked("health", "0+300x400", "0+300x400")
         | _checked("diag", "0x287 86400x100", "0x400"),
         silent=(60, _DAY_MIN, 29 * 60), step=300),
    Case("DCGMCheckStale", "a host whose clock is five hours slow, and that is asked all the time",
         _checked("health", "-18000+300x60", "-18000+300x60")
         | _checked("diag", "-18000x60", "-18000x60")
         | {series("node_time_seconds", **_SCRAPED): "-18000+300x60"},
         silent=(60, 200), step=300),
    Case("DCGMCheckStale", "its clock is five hours ahead, and nobody asks any more",
         _checked("health", "18000+300x12 21600x60", "18000+300x80")
         | _checked("diag", "18000x80", "18000x80")
         | {series("node_time_seconds", **_SCRAPED): "18000+300x80"},
         {120: _HEALTH}, (60, 90), step=300),
    Case("DCGMCheckStale", "its clock is set back by five hours, and nobody asks any more",
         _checked("health", "0+300x12 3600x60", "0+300x12 -14400+300x68")
         | _checked("diag", "0x80", "0x80")
         | {series("node_time_seconds", **_SCRAPED): "0+300x12 -14400+300x68"},
         {90: _HEALTH}, (60,), step=300),
    Case("DCGMCheckStale", "node-exporter is restarted",
         _checked("health", values((0, 20), (None, 5), (0, 5)), "0x60"), silent=(22, 25, 29)),
]  # fmt: skip
