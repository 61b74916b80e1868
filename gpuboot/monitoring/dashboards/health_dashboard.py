"""Health: what is broken, what the driver asks for, and what was done about it."""

from __future__ import annotations

from gpuboot.config.settings import Alerts
from gpuboot.monitoring.dashboards.alert_panels import (
    ALERT_COUNTS,
    ON_ANY_NODE,
    alerts_table,
    needing,
)
from gpuboot.monitoring.dashboards.node_states import CLOSED_NODES, NODE_STATE, OPEN, STATES
from gpuboot.monitoring.dashboards.spec import (
    KUBE_STATE_METRICS,
    ORANGE_ABOVE_NONE,
    RED_ABOVE_NONE,
    Column,
    Dashboard,
    Panel,
    Query,
    Row,
    State,
    by_node,
    graph,
    stat,
)
from gpuboot.monitoring.dashboards.variables import ON_GPU, ON_NODE, alerts_expr
from gpuboot.monitoring.dashboards.xid_panels import xid_panels
from gpuboot.monitoring.rules.promql import UP
from gpuboot.monitoring.rules.watches import GPU_JUDGED

NODES = f"{{{ON_NODE}}}"
GPUS = f"{{{ON_GPU}}}"
NAME = "{{node}} GPU {{gpu}}"
BY_GPU = "max by (node, gpu)"

# dcgm_structs.h, dcgmHealthWatchResults_t
VERDICTS = (State(0, "pass", "green"), State(10, "warn", "orange"), State(20, "fail", "red"))
# dcgm_fields.h, DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION
ACTIONS = (
    State(0, "none", "green"),
    State(1, "reset GPU", "orange"),
    State(2, "reboot node", "red"),
    State(3, "drain peers", "semi-dark-orange"),
    State(4, "drain and reset", "dark-orange"),
    State(5, "recover IMEX domain", "yellow"),
    State(6, "reset bus", "red"),
    State(7, "reboot system", "red"),
)
ALERT_STATES = (State(1, "pending", "yellow"), State(2, "firing", "red"))


def count(condition: str) -> str:
    """How many GPUs meet a condition; 0 when none does."""
    return f"count({BY_GPU} ({condition})) or vector(0)"


STATE = (
    *ALERT_COUNTS,
    stat(
        "Need an action",
        "GPUs whose driver asks for a reset, reboot or drain: the best single signal. It takes a "
        "driver and DCGM that have it (DCGM 4.5).",
        count(f"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION{GPUS} > 0 != 5"),
        steps=RED_ABOVE_NONE,
    ),
    stat(
        "Health check fails",
        "GPUs that one of DCGM's health watches fails, by a code that means a broken card of this "
        "model. The watch ALL stays failed until the exporter restarts.",
        count(f'{GPU_JUDGED}{GPUS[:-1]},judged="critical"}}'),
        steps=RED_ABOVE_NONE,
    ),
    stat(
        "Replace",
        "GPUs with an alert whose action is replace, such as a row remap failure, NVIDIA's "
        "criterion. They may work: each of them is among those that need repair.",
        needing("replace"),
        steps=RED_ABOVE_NONE,
    ),
    stat(
        "Wait for a reset",
        "GPUs with a row remap that takes effect with the next reset. They work until then.",
        count(f"DCGM_FI_DEV_ROW_REMAP_PENDING{GPUS} == 1"),
        steps=ORANGE_ABOVE_NONE,
    ),
    stat(
        "Exporters down",
        "Exporters that do not answer. That is no fault of a GPU, but its faults are not seen.",
        f"count({UP[:-1]},{ON_NODE}}} == 0) or vector(0)",
        steps=ORANGE_ABOVE_NONE,
    ),
    CLOSED_NODES,
)

MATRIX = Panel(
    "table",
    "Health watches",
    "DCGM's own verdict of each part of each GPU. It also fails cards that are well, by NVLink's "
    "counters since the last reset; thermal and power warnings are seldom the GPU's fault.",
    columns=(
        Column(
            "Value",
            by_node(f"max by (node, gpu, health_watch) (DCGM_EXP_GPU_HEALTH_STATUS{GPUS})"),
        ),
    ),
    states=VERDICTS,
    matrix=("GPU", "health_watch"),
    size=(14, 9),
)
RECOVERY = Panel(
    "state-timeline",
    "What the driver asks for",
    "Recovery action of each GPU over time.",
    (Query(by_node(f"{BY_GPU} (DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION{GPUS})"), "{{GPU}}"),),
    states=ACTIONS,
    size=(10, 9),
)


MEMORY = Panel(
    "table",
    "Memory and links",
    "Counters of each GPU. Corrected errors are a trend, not a fault. Remapped rows are spare rows "
    "in use: growth means that memory wears out. Retired pages are what GPUs before Ampere have "
    "instead (limit 63). Fewer lanes than possible: a loose or dirty connector.",
    columns=(
        Column("Node", label="node"),
        Column("GPU", label="gpu", link="gpu-profile"),
        *(
            Column(title, f"{BY_GPU} ({metric}{GPUS})", steps=steps)
            for title, metric, steps in (
                ("Corrected", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", ()),
                ("Uncorrected", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", RED_ABOVE_NONE),
                ("Uncorrected, life", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", ORANGE_ABOVE_NONE),
                ("Rows, corrected", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", ()),
                ("Rows, uncorrected", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", ORANGE_ABOVE_NONE),
                (
                    "Banks without spare",
                    "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE",
                    ORANGE_ABOVE_NONE,
                ),
                ("Remap waits", "DCGM_FI_DEV_ROW_REMAP_PENDING", ORANGE_ABOVE_NONE),
                ("Remap failed", "DCGM_FI_DEV_ROW_REMAP_FAILURE", RED_ABOVE_NONE),
                ("Retired, uncorrected", "DCGM_FI_DEV_RETIRED_DBE", ORANGE_ABOVE_NONE),
            )
        ),
        Column(
            "PCIe lanes missing",
            f"{BY_GPU} (DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH{GPUS} - DCGM_FI_DEV_PCIE_LINK_WIDTH{GPUS})",
            steps=ORANGE_ABOVE_NONE,
        ),
    ),
    size=(24, 8),
)
NVLINK = {
    "replay": "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "recovery": "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    "CRC data": "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
}
LINKS = (
    graph(
        "PCIe replays per minute",
        "DCGM's allowance per minute at 16 lanes: gen 3: 8, gen 4: 16 (line), gen 5: 31, gen 6: "
        "62. Above it, reseat or swap.",
        (
            f"{BY_GPU} (rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER{GPUS}[$__rate_interval])) * 60",
            NAME,
        ),
        range=(0, None),
        steps=((None, "text"), (16, "orange")),
        limit=True,
    ),
    graph(
        "NVLink errors per second",
        "Any replay or recovery is an error to DCGM; CRC errors from 100 per second. Empty: no "
        "NVLink.",
        *(
            Query(f"{BY_GPU} (rate({metric}{GPUS}[$__rate_interval]))", f"{NAME} {name}")
            for name, metric in NVLINK.items()
        ),
        range=(0, None),
    ),
)
HISTORY = (
    alerts_table((12, 9)),
    Panel(
        "state-timeline",
        "Alerts over time",
        "When each of our alerts was pending and fired. Empty is good.",
        (
            Query(
                "max by (alertname, node, gpu)"
                f" (2 * {alerts_expr(ON_ANY_NODE)}"
                f" or {alerts_expr(ON_ANY_NODE, 'pending')})",
                "{{alertname}} {{node}} {{gpu}}",
            ),
        ),
        states=ALERT_STATES,
        size=(12, 9),
    ),
    Panel(
        "state-timeline",
        "GPU nodes open and closed to new pods",
        "When a node was cordoned, by a person or by repair, not ready, or closed by gpuboot's "
        "taint until its GPUs are proven.",
        (Query(NODE_STATE, "{{node}}"),),
        states=(OPEN, *STATES.values()),
        size=(12, 6),
        requires=KUBE_STATE_METRICS,
    ),
    Panel(
        "table",
        "Taints of GPU nodes",
        "Why pods stay away from a node: quarantine, maintenance, pressure.",
        columns=(
            Column("Node", label="node", link="gpu-node"),
            Column("Taint", label="key"),
            Column("Value", label="value"),
            Column("Effect", label="effect"),
            Column(
                "In force",
                f"max by (node, key, value, effect) (kube_node_spec_taint{NODES})"
                f" and on (node) node:gpu_capacity:sum{NODES} > 0",
                states=(State(1, "yes", "orange"),),
            ),
        ),
        size=(12, 6),
        requires=KUBE_STATE_METRICS,
    ),
)


def board(alerts: Alerts) -> Dashboard:
    """The dashboard of faults.

    + alerts: its `xid` overrides classes of XID codes
    """
    return Dashboard(
        "gpu-health",
        "GPU health",
        "What is broken, what the driver asks for, and what was done about it.",
        ("node", "modelName", "gpu"),
        (
            Row("Now", STATE),
            Row("Verdicts", (MATRIX, RECOVERY)),
            Row("XID errors", xid_panels(alerts)),
            Row("Memory and links", (MEMORY, *LINKS)),
            Row("Alerts and repair", HISTORY),
        ),
        alerts=ON_ANY_NODE,
        since="now-24h",
    )
