"""What limits a GPU's work, told from its counters: the classes of the profile dashboard.

Means of 5 minutes; the first class that applies, by the rules and thresholds of `gpuboot profile`
(`gpuboot.query.profile`). Counters tell what a GPU did, not why: a class is where to look
first, not a verdict. One that needs the host's view (starved of input) is only suspected here, and
one that needs to know the model's NVLink is not told.
"""

from __future__ import annotations

from gpuboot.config.settings.profile import thresholds
from gpuboot.monitoring.dashboards.spec import State, states_expr
from gpuboot.monitoring.dashboards.variables import HELD_BY, ON_GPU, ON_NODE

_LIMITS = thresholds()  # those of `gpuboot profile`
DRAM_CEILING, BUSY_DRAM = _LIMITS["dram_ceiling"], _LIMITS.busy_dram
SM_NEEDED, SM_POOR = _LIMITS["sm_needed"], _LIMITS["sm_poor"]

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


def throttled(reason: str) -> str:
    """PromQL that holds where this reason held clocks down for too much of the time."""
    series = f'gpu:throttle:ratio5m{{{ON_NODE},reason="{reason}"}}'
    return f"max by (node, gpu) ({series}) >= {_LIMITS[reason]}"


def link_use() -> str:
    """PCIe input as a share of what the link can carry: 985 MB/s per lane at gen 3, then double."""
    by_gpu = "max by (node, gpu)"
    width = f"{by_gpu} (DCGM_FI_DEV_PCIE_LINK_WIDTH{{{ON_GPU}}})"
    generation = f"{by_gpu} (DCGM_FI_DEV_PCIE_MAX_LINK_GEN{{{ON_GPU}}})"
    received = f"{by_gpu} (avg_over_time(DCGM_FI_PROF_PCIE_RX_BYTES{{{ON_GPU}}}[5m]))"
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
            f"on (node, gpu) ({throttled('hw_thermal')} or {throttled('sw_thermal')})"
            f" and {ENGINE} >= {_LIMITS['at_work']}",
        ),
        (THROTTLED, f"on (node, gpu) {throttled('power_brake')}"),
        (
            IDLE,
            f"{ENGINE} < {_LIMITS['idle_engine']} and"
            f" ({DRAM} < {_LIMITS['idle_dram']} or {ENGINE} unless {DRAM})",
        ),
        (
            MEMORY,
            f"{SM} >= {SM_POOR} and {DRAM} >= {BUSY_DRAM:g} and {DRAM} / {DRAM_CEILING} >= {pipe}",
        ),
        (
            COMPUTE,
            f"{SM} >= {SM_NEEDED} and {pipe} >= {_LIMITS['pipe_busy']} and {DRAM} < {BUSY_DRAM:g}",
        ),
        (INPUT, f"on (node, gpu) {link_use()} >= {_LIMITS['link_busy']}"),
        (LATENCY, f"{ENGINE} >= {_LIMITS['engine_busy']} and {SM} < {SM_POOR}"),
        (BALANCED, SM),
    ]
    return states_expr(ENGINE, conditions, UNKNOWN)
