"""What limits a GPU's work, told from its counters: the classes of the profile dashboard.

Means of 5 minutes; the first class that applies. Thresholds marked * are NVIDIA's (DCGM user
guide, profiling metrics); the others are ours. Counters tell what a GPU did, not why: a class is
where to look first, not a verdict. One that needs the host's view (starved of input) is only
suspected here.
"""

from __future__ import annotations

from gpuboot.dashboards.spec import State, states_expr
from gpuboot.dashboards.variables import HELD_BY, ON_GPU, ON_NODE

DRAM_CEILING = 0.8  # * practical peak of DCGM_FI_PROF_DRAM_ACTIVE
SM_NEEDED = 0.8  # * effective use needs it; it is not sufficient
SM_POOR = 0.5  # * below, the GPU is likely used ineffectively
BUSY_DRAM = 0.75 * DRAM_CEILING

BY = "node, gpu, GPU_I_PROFILE, GPU_I_ID"
# Series of the chosen GPUs and workloads. MIG instances have an engine and memory of their own.
WORK = f'{ON_GPU},{HELD_BY},GPU_I_PROFILE=~"$profile"'
PIPES = ("TENSOR", "FP64", "FP32", "FP16")


def recorded(name: str) -> str:
    """A recorded mean of 5 minutes of each GPU or MIG instance."""
    return f"max by ({BY}) (gpu:{name}:avg5m{{{WORK}}})"


def busiest_pipe() -> str:
    """Activity of each GPU's busiest arithmetic pipe."""
    arms = (
        f'label_replace(avg_over_time(DCGM_FI_PROF_PIPE_{pipe}_ACTIVE{{{WORK}}}[5m]), "pipe",'
        f' "{pipe}", "", "")'
        for pipe in PIPES
    )
    return f"max by ({BY}) ({' or '.join(arms)})"


def throttled(reason: str, least: float) -> str:
    """Holds where clocks were held down for this reason in `least` of the time."""
    series = f'gpu:throttle:ratio5m{{{ON_NODE},reason="{reason}"}}'
    return f"max by (node, gpu) ({series}) >= {least}"


def link_use() -> str:
    """PCIe input as a share of what the link can carry: 985 MB/s per lane at gen 3, then double."""
    each = "max by (node, gpu)"
    width = f"{each} (DCGM_FI_DEV_PCIE_LINK_WIDTH{{{ON_GPU}}})"
    generation = f"{each} (DCGM_FI_DEV_PCIE_MAX_LINK_GEN{{{ON_GPU}}})"
    received = f"{each} (avg_over_time(DCGM_FI_PROF_PCIE_RX_BYTES{{{ON_GPU}}}[5m]))"
    return f"{received} / ({width} * 985e6 * 2 ^ ({generation} - 3))"


ENGINE, SM, DRAM = recorded("engine_active"), recorded("sm_active"), recorded("dram_active")

THROTTLED = State(1, "slowed by heat or power", "red")
IDLE = State(2, "idle", "super-light-blue")
MEMORY = State(3, "memory-bound", "purple")
COMPUTE = State(4, "compute-bound", "green")
INPUT = State(5, "input-bound (suspected)", "orange")
LATENCY = State(6, "latency-bound", "yellow")
BALANCED = State(7, "balanced or underused", "blue")
UNKNOWN = State(0, "no profiling fields", "text")
CLASSES = (THROTTLED, IDLE, MEMORY, COMPUTE, INPUT, LATENCY, BALANCED, UNKNOWN)


def classification() -> str:
    """PromQL: for each GPU or MIG instance the number of its class."""
    pipe = busiest_pipe()
    conditions = [
        (
            THROTTLED,
            f"on (node, gpu) ({throttled('hw_thermal', 0.05)} or {throttled('sw_thermal', 0.2)})"
            f" and {ENGINE} >= 0.3",
        ),
        (THROTTLED, f"on (node, gpu) {throttled('power_brake', 0.01)}"),
        (IDLE, f"{ENGINE} < 0.05 and ({DRAM} < 0.02 or {ENGINE} unless {DRAM})"),
        (
            MEMORY,
            f"{SM} >= {SM_POOR} and {DRAM} >= {BUSY_DRAM:g} and {DRAM} / {DRAM_CEILING} >= {pipe}",
        ),
        (COMPUTE, f"{SM} >= {SM_NEEDED} and {pipe} >= 0.5 and {DRAM} < {BUSY_DRAM:g}"),
        (INPUT, f"on (node, gpu) {link_use()} >= 0.5"),
        (LATENCY, f"{ENGINE} >= 0.8 and {SM} < {SM_POOR}"),
        (BALANCED, SM),
    ]
    return states_expr(ENGINE, conditions, UNKNOWN)
