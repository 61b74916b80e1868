"""The dashboard of one node, or several side by side: its GPUs, what slows them, its host."""

from __future__ import annotations

from gpuboot.monitoring.dashboards.alert_panels import ON_ANY_NODE, alerts_table
from gpuboot.monitoring.dashboards.spec import (
    POD_LABELS,
    RED_ABOVE_NONE,
    Column,
    Dashboard,
    Panel,
    Query,
    Row,
    State,
    by_node,
    graph,
    kube_stat,
    stat,
    states_expr,
)
from gpuboot.monitoring.dashboards.variables import ON_GPU, ON_NODE

NODES = f"{{{ON_NODE}}}"
GPUS = f"{{{ON_GPU}}}"
NAME = "{{node}} GPU {{gpu}}"
BY_GPU = "max by (node, gpu)"

# Bits of DCGM_FI_DEV_CLOCKS_EVENT_REASONS (nvml.h, nvmlClocksEventReason*), gravest first. Idle
# (1) and an application's own clock setting (2) are no slowdown.
REASONS = (
    (128, State(7, "power brake", "dark-red")),
    (64, State(6, "heat (hardware)", "red")),
    (8, State(5, "hardware slowdown", "semi-dark-red")),
    (32, State(4, "heat (driver)", "orange")),
    (16, State(3, "sync boost", "yellow")),
    (4, State(2, "power cap", "blue")),
    (1, State(1, "idle", "super-light-blue")),
)
FREE_RUNNING = State(0, "full speed", "green")


def throttle_expr() -> str:
    """The gravest reason for low clocks of each GPU, as a number of `REASONS`."""
    mask = f"{BY_GPU} (DCGM_FI_DEV_CLOCKS_EVENT_REASONS{GPUS})"
    conditions = [(state, f"(floor({mask} / {bit}) % 2 == 1)") for bit, state in REASONS]
    return states_expr(mask, conditions, FREE_RUNNING)


def host(expr: str) -> str:
    """`expr` of node-exporter series, by instance, as a vector by node.

    node-exporter knows its host's name, not the node's; kubeadm names nodes by host name.
    """
    instance_nodes = 'label_replace(node_uname_info, "node", "$1", "nodename", "(.+)")'
    return (
        f"max by (node) (({expr}) * on (instance) group_left (node) "
        f"max by (instance, node) ({instance_nodes})) and on (node) node:gpu_visible:count{NODES}"
    )


def cpu(mode: str) -> str:
    """Share of all cores' time that the host spends in this mode."""
    series = f'node_cpu_seconds_total{{mode="{mode}"}}'
    return f"avg by (instance) (rate({series}[$__rate_interval]))"


MARGIN = ((None, "red"), (5, "orange"), (10, "green"))

STATE = (
    stat(
        "Promised",
        "GPUs that the inventory promises for the chosen nodes.",
        f"sum(node:gpu_expected:count{NODES})",
    ),
    stat(
        "Shown",
        "GPUs that the exporter shows (distinct UUIDs, so MIG does not count twice).",
        f"sum(node:gpu_visible:count{NODES})",
    ),
    kube_stat(
        "Held by pods",
        "GPUs and MIG instances that pods hold.",
        f"sum(node:gpu_requested:sum{NODES})",
    ),
    stat(
        "Engine active",
        "Mean over the nodes' GPUs of the last 5 minutes.",
        f"avg(node:engine_active:avg{NODES})",
        "percentunit",
    ),
    stat("Power", "All chosen nodes' GPUs.", f"sum(node:gpu_power:sum{NODES})", "watt"),
    stat(
        "Hottest GPU",
        "Highest core temperature of the chosen GPUs.",
        f"max(DCGM_FI_DEV_GPU_TEMP{GPUS})",
        "celsius",
    ),
    stat(
        "Least margin",
        "Degrees until the first GPU slows itself down (DCGM_FI_DEV_GPU_TEMP_LIMIT). It differs "
        "by model, so it says more than the temperature; the alert begins below 5.",
        f"min(DCGM_FI_DEV_GPU_TEMP_LIMIT{GPUS})",
        "celsius",
        MARGIN,
    ),
    stat(
        "Uncorrected ECC",
        "Uncorrected memory errors since the last reset. Any is a reason to reset the GPU.",
        f"sum({BY_GPU} (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{GPUS}))",
        steps=RED_ABOVE_NONE,
    ),
)

GPU_TABLE = Panel(
    "table",
    "GPUs",
    "One line per GPU; its number leads to its profile. SM much below engine: kernels run but "
    "leave most of the GPU idle. Margin: degrees until it slows itself down. Last XID stays until "
    "the driver is loaded again: it is history, not state.",
    columns=(
        Column("Node", label="node"),
        Column("GPU", label="gpu", link="gpu-profile"),
        *(
            Column(title, f"{BY_GPU} ({metric}{GPUS})", unit="percentunit", decimals=0, gauge=True)
            for title, metric in (
                ("Engine", "gpu:engine_active:avg5m"),
                ("SM", "gpu:sm_active:avg5m"),
                ("Memory", "gpu:memory_used:ratio"),
            )
        ),
        Column("Temperature", f"{BY_GPU} (DCGM_FI_DEV_GPU_TEMP{GPUS})", unit="celsius"),
        Column(
            "Margin",
            f"min by (node, gpu) (DCGM_FI_DEV_GPU_TEMP_LIMIT{GPUS})",
            unit="celsius",
            steps=MARGIN,
        ),
        Column("Power", f"{BY_GPU} (DCGM_FI_DEV_POWER_USAGE{GPUS})", unit="watt"),
        Column("Limit", f"{BY_GPU} (DCGM_FI_DEV_ENFORCED_POWER_LIMIT{GPUS})", unit="watt"),
        *(
            Column(title, f"{BY_GPU} ({metric}{GPUS})", steps=steps)
            for title, metric, steps in (
                ("Last XID", "DCGM_FI_DEV_XID_ERRORS", ((None, "text"), (1.0, "orange"))),
                ("Corrected ECC", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", ()),
                ("Uncorrected ECC", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", RED_ABOVE_NONE),
                ("Remapped rows", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", ()),
                ("Remap failed", "DCGM_FI_DEV_ROW_REMAP_FAILURE", RED_ABOVE_NONE),
            )
        ),
    ),
    size=(24, 9),
)
HOLDERS = Panel(
    "table",
    "Pods that hold GPUs",
    "Pods that hold GPUs of the chosen nodes. Several pods can share one GPU (time-slicing or "
    "MIG), and each shows the whole GPU's activity.",
    columns=(
        Column("Node", label="node"),
        Column("GPU", label="gpu", link="gpu-profile"),
        Column("MIG profile", label="GPU_I_PROFILE"),
        Column("Namespace", label="namespace", link="gpu-namespace"),
        Column("Pod", label="pod"),
        Column(
            "Engine",
            "max by (node, gpu, GPU_I_PROFILE, namespace, pod)"
            f' (gpu:engine_active:avg5m{{{ON_GPU},pod!=""}})',
            unit="percentunit",
            decimals=0,
            gauge=True,
        ),
    ),
    size=(10, 8),
    requires=POD_LABELS,
)

SLOW = (
    Panel(
        "state-timeline",
        "What slows clocks down",
        "The gravest reason of each GPU at each moment. Power cap under load and idle are normal; "
        "heat and power brake are faults of cooling and supply (bits of "
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS).",
        (Query(by_node(throttle_expr()), "{{GPU}}"),),
        states=(*(state for _, state in REASONS), FREE_RUNNING),
    ),
    graph(
        "Time slowed down, by reason",
        "Share of the last 5 minutes, from the driver's own nanosecond counters, so nothing "
        "between samples is missed. Alerts begin at 1 % for hardware heat and power brake, 10 % "
        "for the driver's heat slowdown.",
        (
            f'max by (node, gpu, reason) (gpu:throttle:ratio5m{{{ON_NODE},gpu=~"$gpu"}})',
            NAME + " {{reason}}",
        ),
        unit="percentunit",
        range=(0, None),
    ),
    graph(
        "Temperature",
        "Core temperature. GPUs of one node that drift apart point to airflow or a failing fan.",
        (f"{BY_GPU} (DCGM_FI_DEV_GPU_TEMP{GPUS})", NAME),
        unit="celsius",
    ),
    graph(
        "Power",
        "Draw of each GPU. Flat at the limit: power-capped, normal for heavy work.",
        (f"{BY_GPU} (DCGM_FI_DEV_POWER_USAGE{GPUS})", NAME),
        unit="watt",
        range=(0, None),
    ),
)


def _throughput(title: str, help: str, received: str, transmitted: str) -> Panel:
    return graph(
        title,
        help,
        (f"{BY_GPU} ({received}{GPUS})", NAME + " in"),
        (f"{BY_GPU} ({transmitted}{GPUS})", NAME + " out"),
        unit="Bps",
        range=(0, None),
    )


LINKS = (
    _throughput(
        "PCIe",
        "Headers and payload, in: host to GPU. A link carries about 1 GB/s per lane at gen 3, "
        "twice that with each generation after.",
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        "DCGM_FI_PROF_PCIE_TX_BYTES",
    ),
    _throughput(
        "NVLink",
        "Payload over all links. Empty: the GPUs have no NVLink.",
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
    ),
)

HOST = (
    graph(
        "Host CPU",
        "Share of all cores busy, and waiting for disks. GPUs that pause while the host is busy or "
        "waits are starved of input.",
        (host(f"1 - {cpu('idle')}"), "{{node}} busy"),
        (host(cpu("iowait")), "{{node}} waits for disks"),
        unit="percentunit",
        range=(0, 1),
    ),
    graph(
        "Host memory",
        "Used share of the host's memory, caches not counted.",
        (
            host(
                "1 - max by (instance) (node_memory_MemAvailable_bytes"
                " / node_memory_MemTotal_bytes)"
            ),
            "{{node}}",
        ),
        unit="percentunit",
        range=(0, 1),
    ),
)

NODE = Dashboard(
    "gpu-node",
    "GPU node",
    "Every GPU of the chosen nodes: load, heat, power, errors, who holds it, and the host.",
    ("node", "modelName", "gpu"),
    (
        Row("State", STATE),
        Row("GPUs", (GPU_TABLE, HOLDERS, alerts_table())),
        Row("Slowed down", SLOW),
        Row("Links", LINKS),
        Row("Host", HOST),
    ),
    alerts=ON_ANY_NODE,
)
