"""The cluster: its GPUs, how many pods hold and use, and what is wrong."""

from __future__ import annotations

from dataclasses import replace

from gpuboot.monitoring.dashboards.alert_panels import (
    ALERT_COUNTS,
    ON_ANY_NODE,
    REPAIR,
    alerts_table,
    needing,
)
from gpuboot.monitoring.dashboards.node_states import (
    CLOSED_NODES,
    FREE_BY_NODE,
    NODE_STATE,
    OPEN,
    STATES,
    USABLE,
)
from gpuboot.monitoring.dashboards.spec import (
    GREEN_ABOVE_NONE,
    KUBE_STATE_METRICS,
    ORANGE_ABOVE_NONE,
    RED_ABOVE_NONE,
    Column,
    Dashboard,
    Panel,
    Query,
    Row,
    graph,
    kube_column,
    kube_query,
    kube_stat,
    stat,
)
from gpuboot.monitoring.dashboards.variables import ON_NODE
from gpuboot.monitoring.rules.promql import RESOURCES, UP

NODES = f"{{{ON_NODE}}}"
# A GPU that does more than idling contexts do; below 5 % of engine time it counts as idle.
AT_WORK = (
    f'max by (node, UUID) (gpu:engine_active:avg5m{{{ON_NODE},modelName=~"$modelName"}}) >= 0.05'
)
ACTIVE = f"count({AT_WORK}) or vector(0)"
SM_AT_WORK = f"avg(max by (node, UUID) (gpu:sm_active:avg5m{NODES}) and {AT_WORK})"
GPU_PODS = f"max by (namespace, pod) (kube_pod_container_resource_requests{{{RESOURCES}}} > 0)"
PENDING = (
    f'({GPU_PODS} and max by (namespace, pod) (kube_pod_status_phase{{phase="Pending"}} == 1))'
)
WAITING = f"(time() - max by (namespace, pod) (kube_pod_created)) and {PENDING}"

CAPACITY = (
    stat(
        "Promised",
        "GPUs that the inventory promises. The yardstick of all other numbers here: it does not "
        "change when hardware fails.",
        f"sum(node:gpu_expected:count{NODES})",
    ),
    stat(
        "Missing",
        "Promised GPUs that no exporter shows: lost from the bus, driver not loaded, node or "
        "exporter down. 0 is the only good value.",
        f"sum(node:gpu_expected:count{NODES} - (node:gpu_visible:count{NODES}"
        f" or 0 * node:gpu_expected:count{NODES}))",
        steps=RED_ABOVE_NONE,
    ),
    kube_stat(
        "Capacity",
        "GPUs and MIG instances that kubelets know of (kube-state-metrics).",
        f"sum(node:gpu_capacity:sum{NODES})",
    ),
    kube_stat(
        "Not allocatable",
        "Capacity that may not be given to pods, because the device plugin calls it unhealthy. A "
        "GPU that works and still has to be reset or replaced is under Need repair.",
        f"sum(node:gpu_capacity:sum{NODES}) - sum(node:gpu_allocatable:sum{NODES})",
        steps=RED_ABOVE_NONE,
    ),
    kube_stat(
        "Held by pods",
        "GPUs and MIG instances that running or starting pods hold, busy or not.",
        f"sum(node:gpu_requested:sum{NODES})",
    ),
    stat(
        "Active",
        "GPUs whose engine was active for 5 % or more of the last 5 minutes. Held but not active "
        "is what the namespace dashboard asks about.",
        ACTIVE,
        steps=GREEN_ABOVE_NONE,
    ),
    kube_stat(
        "Largest job",
        "Most free GPUs on one node that takes pods: a pod that wants more waits, however many are "
        "free in total.",
        f"clamp_min(max({USABLE} or 0 * node:gpu_capacity:sum{NODES}), 0)",
    ),
    CLOSED_NODES,
    kube_stat(
        "Waiting GPU pods",
        "Pods that ask for a GPU and do not run yet, whatever the reason.",
        f"count({PENDING}) or vector(0)",
        steps=ORANGE_ABOVE_NONE,
    ),
    kube_stat(
        "Longest wait",
        "Age of the oldest pod that waits for a GPU. The alert GPUPodPending begins at 15 minutes.",
        f"max({WAITING}) or vector(0)",
        "s",
        ((None, "green"), (900, "orange")),
    ),
    kube_stat(
        "Allocation",
        "GPUs held by pods as a share of those that may be given to pods. Above 85 % new jobs "
        "begin to wait for the right size of gap.",
        "cluster:gpu_allocation:ratio",
        "percentunit",
        ((None, "green"), (0.85, "orange")),
    ),
    stat(
        "Power",
        "Power draw of all GPUs, without hosts.",
        f"sum(node:gpu_power:sum{NODES})",
        "watt",
    ),
)
TO_DO = (
    stat(
        "Need repair",
        "GPUs with an alert that asks for a drain, a reset, a reboot or a replacement, whether "
        "they are still given to pods or not.",
        needing(*REPAIR),
        steps=RED_ABOVE_NONE,
    ),
    stat(
        "Exporters up",
        "Nodes with promised GPUs whose exporter answers, as a share of all such nodes. Below "
        "100 % every other number here is too low.",
        f"(count(max by (node) ({UP} == 1) and on (node) node:gpu_expected:count{NODES})"
        f" or vector(0)) / count(node:gpu_expected:count{NODES})",
        "percentunit",
        ((None, "red"), (1, "green")),
    ),
    *ALERT_COUNTS,
)

USE = (
    graph(
        "GPUs: capacity, held, active",
        "Between held and active: reserved but unused. Between allocatable and held: "
        "free. Between capacity and allocatable: what the device plugin calls unhealthy.",
        kube_query(f"sum(node:gpu_capacity:sum{NODES})", "capacity"),
        kube_query(f"sum(node:gpu_allocatable:sum{NODES})", "allocatable"),
        kube_query(f"sum(node:gpu_requested:sum{NODES})", "held"),
        (ACTIVE, "active"),
        range=(0, None),
    ),
    Panel(
        "heatmap",
        "Engine active by node",
        "Mean engine activity of each node's GPUs; one line per node. A dark line among bright "
        "ones is a node that gets no work, or a job that waits for its slowest member.",
        (Query(f"node:engine_active:avg{NODES}", "{{node}}"),),
        unit="percentunit",
    ),
    graph(
        "Activity",
        "Engine: some kernel ran. SM: multiprocessors had work, the better measure of use "
        "(NVIDIA: 0.8 is needed for good use, below 0.5 is likely ineffective). Engine is the mean "
        "of all GPUs, idle ones included; SM that of GPUs at work (engine at 5 % or more). "
        "Allocation far above engine: GPUs are held, not used.",
        kube_query("cluster:gpu_allocation:ratio", "allocation"),
        ("cluster:engine_active:avg", "engine active"),
        (SM_AT_WORK, "SM active, GPUs at work"),
        unit="percentunit",
        range=(0, 1),
    ),
    graph(
        "Power by node",
        "Power draw of GPUs, stacked. Idle data centre GPUs take 40 to 100 W each.",
        (f"node:gpu_power:sum{NODES}", "{{node}}"),
        unit="watt",
        range=(0, None),
        stacked=True,
    ),
)

BY_NODE = "max by (node)"
NODE_TABLE = Panel(
    "table",
    "Nodes",
    "One line per GPU node; the node's name leads to its dashboard. Shown below promised: GPUs "
    "are lost. Allocatable below capacity: the device plugin found some unhealthy. New pods go "
    "to nodes that are open; closed: by gpuboot's taint, until its GPUs are proven.",
    columns=(
        Column("Node", label="node", link="gpu-node"),
        kube_column("New pods", NODE_STATE, states=(OPEN, *STATES.values())),
        Column("Promised", f"{BY_NODE} (node:gpu_expected:count{NODES})"),
        Column("Shown", f"{BY_NODE} (node:gpu_visible:count{NODES})"),
        kube_column("Capacity", f"{BY_NODE} (node:gpu_capacity:sum{NODES})"),
        kube_column("Allocatable", f"{BY_NODE} (node:gpu_allocatable:sum{NODES})"),
        kube_column("Held", f"{BY_NODE} (node:gpu_requested:sum{NODES})"),
        Column(
            "Engine active",
            f"{BY_NODE} (node:engine_active:avg{NODES})",
            unit="percentunit",
            decimals=0,
            gauge=True,
        ),
        Column("Power", f"{BY_NODE} (node:gpu_power:sum{NODES})", unit="watt"),
        Column("Hottest GPU", f"{BY_NODE} (DCGM_FI_DEV_GPU_TEMP{NODES})", unit="celsius"),
        Column(
            "Least margin",
            f"min by (node) (DCGM_FI_DEV_GPU_TEMP_LIMIT{NODES})",
            unit="celsius",
            steps=((None, "red"), (5, "green")),
        ),
    ),
    size=(24, 7),
)

PROBLEMS = (
    alerts_table((13, 7)),
    FREE_BY_NODE,
    Panel(
        "table",
        "Pods that wait for GPUs",
        "GPU pods that do not run yet, oldest first. `kubectl describe pod` says why.",
        columns=(
            Column("Namespace", label="namespace", link="gpu-namespace"),
            Column("Pod", label="pod"),
            Column("Waiting for", WAITING, unit="s"),
        ),
        size=(6, 7),
        sort="Waiting for",
        requires=KUBE_STATE_METRICS,
    ),
)

CLUSTER = Dashboard(
    "gpu-cluster",
    "GPU cluster",
    "What the cluster's GPUs are, who holds them, how busy they are, and what is wrong.",
    ("node", "modelName"),
    (
        Row("Capacity and state", (*(replace(number, size=(4, 3)) for number in CAPACITY), *TO_DO)),
        Row("Use", USE),
        Row("Nodes", (NODE_TABLE,)),
        Row("Problems", PROBLEMS),
    ),
    alerts=ON_ANY_NODE,
)
