"""PromQL for the GPU nodes that take new pods, and for what is free on them."""

from __future__ import annotations

from gpuboot.monitoring.dashboards.spec import (
    KUBE_STATE_METRICS,
    ORANGE_ABOVE_NONE,
    Panel,
    Query,
    State,
    kube_stat,
    states_expr,
)
from gpuboot.monitoring.dashboards.variables import ON_NODE
from gpuboot.monitoring.rules.promql import closed_nodes

NODES = f"{{{ON_NODE}}}"
FREE = f"(node:gpu_allocatable:sum{NODES} - node:gpu_requested:sum{NODES})"
OPEN = State(0, "open", "green")
STATES = {
    "not ready": State(1, "not ready", "red"),
    "cordoned": State(2, "cordoned", "orange"),
    "closed": State(3, "closed", "orange"),
}
NODE_STATE = states_expr(
    f"max by (node) (node:gpu_capacity:sum{NODES})",
    [(STATES[reason], f"on (node) ({nodes})") for reason, nodes in closed_nodes(ON_NODE).items()],
    OPEN,
)
USABLE = f"({FREE} and on (node) ({NODE_STATE}) == {OPEN.value})"
CLOSED_NODES = kube_stat(
    "Closed nodes",
    "GPU nodes that take no new pods: cordoned, not ready, or closed by gpuboot's taint until "
    "their GPUs are proven.",
    f"count(({NODE_STATE}) != {OPEN.value}) or vector(0)",
    steps=ORANGE_ABOVE_NONE,
)
FREE_BY_NODE = Panel(
    "bargauge",
    "Free GPUs by node",
    "GPUs that a new pod could get now. 0 where a node takes no new pods, and why. Many ones "
    "on many nodes do not make one job of eight.",
    (
        Query(f"clamp_min({USABLE}, 0)", "{{node}}"),
        *(
            Query(
                f"0 * ({FREE} and on (node) ({NODE_STATE}) == {state.value})",
                f"{{{{node}}}} ({state.text})",
            )
            for state in STATES.values()
        ),
    ),
    size=(5, 7),
    range=(0, None),
    steps=((None, "orange"), (1, "green")),
    requires=KUBE_STATE_METRICS,
)
