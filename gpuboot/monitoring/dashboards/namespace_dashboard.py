"""Who holds GPUs, what comes of it, and what it costs: by namespace and pod."""

from __future__ import annotations

from gpuboot.config.settings import Cost
from gpuboot.monitoring.dashboards.gpu_hours import (
    GPU_HOURS,
    HELD_GPUS,
    IDLE_HOURS,
    IN,
    NAMESPACES,
    POWER,
    PRICED,
    USED,
    hours,
    money,
)
from gpuboot.monitoring.dashboards.spec import (
    KUBE_STATE_METRICS,
    POD_LABELS,
    Column,
    Dashboard,
    Panel,
    Query,
    Row,
    graph,
    stat,
)
from gpuboot.monitoring.dashboards.variables import HELD_BY
from gpuboot.monitoring.rules.promql import QUOTA_RESOURCES

TOTALS = (
    stat(
        "Held",
        "GPU hours that pods held in the chosen time, busy or not. A MIG instance counts as its "
        "share of a GPU: the larger of its compute and memory slices as a share of the card's; a "
        "time slice as its part of a GPU.",
        f"{hours(HELD_GPUS)} or vector(0)",
        GPU_HOURS,
        decimals=1,
    ),
    stat(
        "Used",
        "GPU hours in which the engine was active. The activity of a GPU that several pods share "
        "is divided among them.",
        f"{hours(USED)} or vector(0)",
        GPU_HOURS,
        decimals=1,
    ),
    stat(
        "Efficiency",
        "Used as a share of held. What is missing was reserved, and idle.",
        f"({hours(USED)}) / ({hours(HELD_GPUS)} > 0)",
        "percentunit",
        ((None, "red"), (0.3, "orange"), (0.6, "green")),
        empty="none held",
    ),
    stat(
        "Held now",
        "GPUs and MIG instances that pods hold at this moment.",
        f"sum(namespace:gpu_requested:sum{NAMESPACES}) or vector(0)",
    ),
    stat(
        "Idle for an hour",
        "GPUs that pods hold and that did less than 1 % for a whole hour.",
        f"sum(namespace:gpu_idle_held:count{NAMESPACES}) or vector(0)",
        steps=((None, "green"), (1, "orange")),
    ),
    stat(
        "Power now",
        "Of the GPUs that pods hold.",
        f"sum(namespace:gpu_power:sum{NAMESPACES}) or vector(0)",
        "watt",
    ),
    stat(
        "Energy",
        "Of GPUs while pods of the chosen namespaces held them, in the chosen time; hosts and "
        "cooling not included.",
        f"({hours(POWER)}) / 1e3 or vector(0)",
        "kwatth",
        decimals=2,
    ),
)

OVER_TIME = (
    graph(
        "GPUs held, by namespace",
        "Stacked: the top line is the sum of all namespaces.",
        (f"namespace:gpu_requested:sum{NAMESPACES}", "{{namespace}}"),
        range=(0, None),
        stacked=True,
    ),
    graph(
        "Engine active, by namespace",
        "Mean over the GPUs that a namespace's pods hold. A namespace that is low "
        "here and high in the panel beside it holds GPUs that it does not need.",
        (f"namespace:engine_active:avg{NAMESPACES}", "{{namespace}}"),
        unit="percentunit",
        range=(0, 1),
    ),
    graph(
        "Pods: engine active",
        "Mean of 2 minutes over each pod's GPUs: what autoscalers see.",
        (f"namespace_pod:engine_active:avg2m{{{HELD_BY}}}", "{{namespace}}/{{pod}}"),
        unit="percentunit",
        range=(0, 1),
    ),
    graph(
        "Pods: SM active",
        "Better than engine activity, where the GPU has it; below 50 % is likely ineffective "
        "(NVIDIA).",
        (f"namespace_pod:sm_active:avg2m{{{HELD_BY}}}", "{{namespace}}/{{pod}}"),
        unit="percentunit",
        range=(0, 1),
    ),
    graph(
        "Power, by namespace",
        "Of the GPUs that pods hold, divided evenly among pods that share one.",
        (f"namespace:gpu_power:sum{NAMESPACES}", "{{namespace}}"),
        unit="watt",
        range=(0, None),
        stacked=True,
    ),
    Panel(
        "bargauge",
        "Quota used",
        "GPUs held as a share of the namespace's ResourceQuota. Empty: no quota on GPUs.",
        (
            Query(
                "max by (namespace, resource) (kube_resourcequota"
                f'{{{IN},{QUOTA_RESOURCES},type="used"}}'
                " / ignoring (type) (kube_resourcequota"
                f'{{{IN},{QUOTA_RESOURCES},type="hard"}} > 0))',
                "{{namespace}} {{resource}}",
            ),
        ),
        unit="percentunit",
        range=(0, 1),
        steps=((None, "green"), (0.8, "orange"), (1, "red")),
    ),
)


BY_NAMESPACE = {
    measure: hours(vector, "namespace")
    for measure, vector in {
        "held": HELD_GPUS,
        "used": USED,
        "energy": POWER,
        "cost": PRICED,
    }.items()
}
SHOWBACK = (
    Column("Namespace", label="namespace", link="gpu-namespace"),
    Column("Team", label="label_team"),
    Column("Held", BY_NAMESPACE["held"], unit=GPU_HOURS, decimals=1),
    Column("Used", BY_NAMESPACE["used"], unit=GPU_HOURS, decimals=1),
    Column(
        "Efficiency",
        f"({BY_NAMESPACE['used']}) / ({BY_NAMESPACE['held']} > 0)",
        unit="percentunit",
        decimals=0,
        gauge=True,
    ),
    Column("Energy", f"({BY_NAMESPACE['energy']}) / 1e3", unit="kwatth", decimals=2),
)
TEAM = Column(
    "Has team",
    f'max by (namespace, label_team) (kube_namespace_labels{{{IN},label_team!=""}})'
    f" and on (namespace) namespace:gpu_requested:sum{NAMESPACES}",
    hidden=True,
)


def showback(cost: Cost) -> Panel:
    """What each namespace held, used and wasted, and its price where prices are set."""
    held_hours, used, cost_expr = (BY_NAMESPACE[measure] for measure in ("held", "used", "cost"))
    idle = f"({cost_expr}) * (1 - clamp_max(({used}) / ({held_hours} > 0), 1))"
    priced = (
        Column("Cost", cost_expr, unit=money(cost), decimals=2),
        Column("Cost of idling", idle, unit=money(cost), decimals=2),
    )
    return Panel(
        "table",
        "By namespace",
        "Held, used and idle GPU hours in the chosen time. Team: the namespace's label `team`. "
        "Hours are counted by the minute; GPUs that nobody held belong to no line."
        + (" Cost: held hours at the price of the node's GPU model." if cost.gpu_hour else ""),
        columns=(*SHOWBACK, *(priced if cost.gpu_hour else ()), TEAM),
        size=(24, 6),
        sort="Held",
    )


PODS = Panel(
    "table",
    "Idle GPU hours by pod",
    "Held minus used in the chosen time, most first: whom to talk to. Short pods waste little, "
    "however idle.",
    columns=(
        Column("Namespace", label="namespace"),
        Column("Pod", label="pod", link="gpu-profile"),
        Column(
            "Held", f"topk(50, {hours(HELD_GPUS, 'namespace, pod')})", unit=GPU_HOURS, decimals=2
        ),
        Column("Idle", f"topk(50, {IDLE_HOURS})", unit=GPU_HOURS, decimals=2),
    ),
    size=(12, 7),
    sort="Idle",
)
IDLE_NOW = Panel(
    "table",
    "Held and idle now",
    "GPUs that a pod holds and that were less than 1 % busy at every moment of the last hour.",
    columns=(
        Column("Namespace", label="namespace"),
        Column("Pod", label="pod"),
        Column("Node", label="node", link="gpu-node"),
        Column("GPU", label="gpu", link="gpu-profile"),
        Column(
            "Busiest moment",
            f"max by (namespace, pod, node, gpu) (gpu:engine_active:max1h{{{HELD_BY}}}) < 0.01",
            unit="percentunit",
            decimals=1,
        ),
    ),
    size=(12, 7),
)


def costs(cost: Cost) -> tuple[Panel, ...]:
    """Money; nothing without prices."""
    if not cost.gpu_hour:
        return ()
    return (
        stat(
            "Cost",
            "Held GPU hours at the price of each node's GPU model (settings: cost.gpu_hour).",
            hours(PRICED),
            money(cost),
            decimals=2,
        ),
    )


def board(cost: Cost) -> Dashboard:
    """The dashboard of namespaces and pods.

    + cost: prices; without them it shows hours only
    """
    return Dashboard(
        "gpu-namespace",
        "GPU use and cost",
        "Who holds GPUs, how well they are used, and what that costs.",
        ("namespace", "pod"),
        (
            Row("In the chosen time", (*TOTALS, *costs(cost))),
            Row("Showback", (showback(cost), PODS, IDLE_NOW)),
            Row("Over time", OVER_TIME),
        ),
        alerts='namespace=~"$namespace"',
        since="now-24h",
        requires=POD_LABELS | KUBE_STATE_METRICS,
    )
