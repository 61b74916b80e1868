"""Recording rules on XIDs: counts, what is new, what is not repaired yet, how often."""

from __future__ import annotations

from gpuboot.config.settings import Settings
from gpuboot.config.settings.alerting import XidClass
from gpuboot.rules.promql import BLANK, GPU, SLICE
from gpuboot.rules.record import Record
from gpuboot.rules.watches import complaints
from gpuboot.rules.xid import regex

TOTAL = "gpu:xid_errors:total"
NEW = "gpu:xid_errors:new2m"
VISIBLE = "gpu:visible:info"
HEALTHY = "gpu:free_of_complaints:info"
UNREPAIRED = "gpu:xid_unrepaired:timestamp"
INCIDENT = "gpu:xid_incident:active"
_HARMLESS: tuple[XidClass, ...] = ("application", "information", "context")
_INCIDENT_GAP = "2m"  # XIDs that lie closer together are one incident
_DAY_S = 86400
# What of a GPU says that it is not well, whatever the XIDs.
_COMPLAINTS = (
    f"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION > 0 < {BLANK}",
    f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0 < {BLANK}",
    complaints(),
)


def xids(settings: Settings) -> list[Record]:
    """What the exporter counts of XIDs, by GPU and MIG instance. + settings: classes of XIDs"""
    return [
        Record(
            TOTAL,
            f"max by ({SLICE}, xid) (DCGM_EXP_XID_ERRORS_TOTAL)",
            "XIDs since the exporter started, by code and MIG instance; goes on when the GPU's pod "
            "changes.",
        ),
        Record(
            NEW,
            _new(TOTAL, _INCIDENT_GAP),
            f"1 for every XID that was counted in the last {_INCIDENT_GAP}.",
        ),
        Record(
            HEALTHY,
            f"{VISIBLE} unless on (node, UUID) ({_complaints()})",
            "1 for GPUs that are shown, and of which neither driver nor DCGM complains.",
        ),
        Record(
            UNREPAIRED,
            _unrepaired(regex(_HARMLESS, settings.alerts.xid)),
            "When an XID was counted that somebody must act on, in seconds since 1970; until the "
            "repair is seen (then 0, once), or for a day.",
        ),
        Record(
            INCIDENT,
            f"max by ({GPU}) ({NEW}"
            f'{{xid!~"{regex(("context",), settings.alerts.xid)}"}})\n'
            f"or max by ({GPU}) (0 * {VISIBLE})",
            f"1 while XIDs are counted, none more than {_INCIDENT_GAP} after the one before; "
            "else 0. Codes that only accompany others (45: also of killed jobs) are left out.",
        ),
    ]


def _new(series: str, window: str) -> str:
    """Which counts of errors, each a series that is born with its first error, have gone up.

    There are four ways, since `increase` of a newborn series is 0, whatever it is born with, and
    since the counters go away when the exporter restarts:

    1. it rose;
    2. it is higher than when it was last seen, before nobody looked for a while;
    3. it has not been seen for six hours, or ever;
    4. it was not there before, although the GPU was watched (first error after a restart). Both
       are records of the same group: after a gap they are forgotten at the same moment.
    """
    before = f"last_over_time({series}[6h] offset {window})"
    return (
        f"group by ({SLICE}, xid) (\n"
        f"  increase({series}[{window}]) > 0\n"
        f"  or {series} > {before}\n"
        f"  or ({series} unless {before})\n"
        f"  or ({series} unless {series} offset {window})"
        f" and on (node, UUID) {VISIBLE} offset {window}\n)"
    )


def _complaints() -> str:
    return "\n  or ".join(f"max by (node, UUID) ({text})" for text in _COMPLAINTS)


def _unrepaired(codes: str) -> str:
    """When each XID that calls for a repair was last counted; itself remembers.

    The exporter has the GPU open, so that it restarts with every reset and reboot, and its counters
    with it. What has gone from them is repaired once the GPU shows itself without a complaint; a
    GPU that does not show itself, once the node has all its GPUs (it was exchanged).

    + codes: a regular expression for the label `xid` of those that call for none
    """
    labels = f"{GPU}, xid"
    kept = f"max by ({labels}) (last_over_time({UNREPAIRED}[1d]) > time() - {_DAY_S})"
    return (
        f'max by ({labels}) ({NEW}{{xid!~"{codes}"}}) * time()\n'
        f"or {kept}\n"
        f"  and on (node, UUID, xid) last_over_time({TOTAL}[2m])\n"
        f"or {kept}\n"
        f"  and on (node, UUID) {VISIBLE} unless on (node, UUID) {HEALTHY}\n"
        f"or {kept}\n"
        f"  unless on (node, UUID) {VISIBLE}\n"
        "  unless on (node) (node:gpu_visible:count"
        " >= on (node) max by (node) (node:gpu_expected:count))\n"
        f"or 0 * {kept}"
    )
