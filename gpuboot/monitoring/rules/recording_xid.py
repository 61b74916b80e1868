"""Recording rules on XIDs: counts, what is new, what is not repaired yet, how often."""

from __future__ import annotations

from gpuboot.config.settings import Settings
from gpuboot.config.settings.alerting import XidClass
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GAP, GPU, SLICE, UP, non_blank
from gpuboot.monitoring.rules.record import Record
from gpuboot.monitoring.rules.requirements import Requirement
from gpuboot.monitoring.rules.watches import complaints
from gpuboot.monitoring.rules.xid import regex

TOTAL = "gpu:xid_errors:total"
NEW = "gpu:xid_errors:new2m"
VISIBLE = "gpu:visible:info"
HEALTHY = "gpu:free_of_complaints:info"
UNREPAIRED = "gpu:xid_unrepaired:timestamp"
INCIDENT = "gpu:xid_incident:active"
BOOTED = "node:booted:timestamp"
PRESENT = "node:present:info"
REPAIRED = "gpu:repaired:timestamp"
ACTION = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"
# since the driver was loaded, or the GPU was reset
_SINCE_RESET = (
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
)
# these stand in for fields under MIG (gpuboot/monitoring/rules/alerts_memory.py)
MEMORY_XIDS = (48, 63, 64, 94, 95, 140)
_HARMLESS: tuple[XidClass, ...] = ("application", "information", "context")
_INCIDENT_GAP = "2m"  # XIDs that lie closer together are one incident
_DAY_S = 86400
# What of a GPU says that it is not well, whatever the XIDs.
_COMPLAINTS = (
    f"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION > 0 != 5 < {BLANK_VALUE}",  # 5 is of the IMEX domain
    f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0 < {BLANK_VALUE}",
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
        *_ends(),
        Record(
            UNREPAIRED,
            _unrepaired(_calls_for_none(settings)),
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


def _ends() -> list[Record]:
    """Records of the ends of faults: the GPU was repaired, or its node is gone."""
    return [
        Record(
            BOOTED,
            _booted(),
            "When the node's host booted, in seconds since 1970.",
            requires=Requirement.NODE_EXPORTER,
        ),
        Record(
            PRESENT,
            _present(),
            "1 for nodes that the inventory has, or the cluster, or whose exporter is scraped.",
        ),
        Record(
            REPAIRED,
            _repaired(),
            "When the GPU was last reset, its driver loaded or its node booted, in seconds since "
            "1970, as far as Prometheus saw that.",
        ),
    ]


def _new(series: str, window: str) -> str:
    """PromQL for the counts of errors that have gone up; a series begins with its first error.

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


def _calls_for_none(settings: Settings) -> str:
    """A regular expression for XIDs that need no action."""
    harmless = regex(_HARMLESS, settings.alerts.xid).split("|")
    return "|".join(code for code in harmless if int(code) not in MEMORY_XIDS) or "-1"


def _complaints() -> str:
    return "\n  or ".join(f"max by (node, UUID) ({text})" for text in _COMPLAINTS)


def _unrepaired(codes: str) -> str:
    """When each XID that calls for a repair was last counted; itself remembers.

    That its counter has gone tells nothing: the exporter restarts for many reasons. It ends with
    evidence: the GPU was repaired later than it (`REPAIRED`) and nothing complains of it; it is
    gone, and the node shows all its GPUs (it was exchanged) or is gone as well; or it is shown by
    another node.

    + codes: a regular expression for the label `xid` of those that call for none
    """
    labels = f"{GPU}, xid"
    persisting = f"max by ({labels}) (last_over_time({UNREPAIRED}[1d]) > time() - {_DAY_S})"
    return (
        f'max by ({labels}) ({NEW}{{xid!~"{codes}"}}) * time()\n'
        f"or {persisting}\n"
        f"  and on (node, UUID) {VISIBLE}\n"
        f"  unless ({persisting} <= on (node, UUID) group_left () {REPAIRED}"
        f" and on (node, UUID) {HEALTHY})\n"
        f"or {persisting}\n"
        f"  and on (node) {PRESENT} unless on (UUID) {VISIBLE}\n"
        "  unless on (node) (node:gpu_visible:count"
        " >= on (node) max by (node) (node:gpu_expected:count))\n"
        f"or 0 * {persisting}"
    )


_BEFORE = "last_over_time({}[6h] offset 1m)"


def _energy_counts_on() -> str:
    energy = _SINCE_RESET[0]
    return (
        f"max by (node, UUID) ({non_blank(energy)})"
        f" >= 0.5 * max by (node, UUID) ({_BEFORE.format(energy)} < {BLANK_VALUE})"
    )


def _repaired() -> str:
    """When a GPU was last reset, or its driver loaded, or its node booted, as far as it shows.

    Counters that count since then are lower than before (a half: two exporters may tell values of
    different moments); what the driver asked for has been done; the GPU was away for minutes,
    while others of its node were shown, and is back: one that fell off the bus comes back no other
    way. Not if its energy counts on: DCGM loses samples of GPUs with many corrected errors
    (NVIDIA/DCGM issue 313).
    """
    signs = [
        f"max by (node, UUID) ({non_blank(metric)})"
        f" < 0.5 * max by (node, UUID) ({_BEFORE.format(metric)} < {BLANK_VALUE})"
        for metric in _SINCE_RESET
    ]
    requested = f"max by (node, UUID) ({_BEFORE.format(ACTION)} < {BLANK_VALUE}) > 0"
    signs.append(f"max by (node, UUID) ({non_blank(ACTION)}) == 0 and on (node, UUID) {requested}")
    signs.append(
        f"group by (node, UUID) ({VISIBLE} unless on (node, UUID) {VISIBLE} offset 1m"
        f" unless on (node, UUID) max_over_time({VISIBLE}[4m] offset 1m)"
        f" unless on (node, UUID) {_energy_counts_on()})"
        " and on (node) min_over_time(node:gpu_visible:count[4m] offset 1m) > 0"
    )
    now = "\n  or ".join(f"group by (node, UUID) ({sign})" for sign in signs)
    return (
        "max by (node, UUID) (\n"
        f'  label_replace(time() * ({now}), "by", "sign", "", "")\n'
        f'  or label_replace(last_over_time({REPAIRED}[1h]), "by", "itself", "", "")\n'
        f"  or label_replace(group by (node, UUID) ({VISIBLE}) * on (node) group_left () {BOOTED},"
        ' "by", "boot", "", "")\n)'
    )


def _booted() -> str:
    """PromQL for boot times by node; node-exporter has host names, which kubeadm's nodes have."""
    node_names = 'label_replace(node_uname_info, "node", "$1", "nodename", "(.+)")'
    return (
        'max by (node) (node_boot_time_seconds{node!=""}\n'
        '  or node_boot_time_seconds{node=""}'
        f" * on (instance) group_left (node) max by (instance, node) ({node_names}))"
    )


def _present() -> str:
    return (
        "group by (node) (node:gpu_expected:count"
        f" or last_over_time(kube_node_info[{GAP}]) or last_over_time({UP}[{GAP}]))"
    )
