"""Recording rules: what dashboards, alerts and autoscalers ask for again and again, by name.

Names say `level:what:how`. Each survives what happens in a cluster: GPUs without
profiling fields, no kube-state-metrics, MIG (a GPU is one UUID, whatever it is cut into), pods
that share a GPU, exporters that restart or run twice during a rollout, completed pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Cost, Settings
from gpuboot.config.settings.base import seconds
from gpuboot.monitoring.rules.promql import (
    BLANK_NS,
    BLANK_VALUE,
    DEVICE,
    ENGINE,
    GPU,
    HOLDER,
    UTIL,
    dead_profiling,
    engine,
    level,
    non_blank,
    over,
    profiled,
    quoted,
    shown_by_exporter,
)
from gpuboot.monitoring.rules.record import Record
from gpuboot.monitoring.rules.recording_applications import applications
from gpuboot.monitoring.rules.recording_use import activity, allocation, power, shares
from gpuboot.monitoring.rules.recording_xid import VISIBLE, xids
from gpuboot.monitoring.rules.requirements import Requirement
from gpuboot.monitoring.rules.watches import records as watches

IDLE_SHARE = 0.8  # of an hour's samples; fewer (a profiling pause, a new pod) tell nothing
# PCIe generation -> Gbit/s of a lane. DCGM allows one error in 10^12 bits, so 0.06 a minute for
# each Gbit/s (GetExpectedPcieReplayRate of DCGM 4.6.0, modules/health/DcgmHealthWatch.cpp:1519).
_PCIE_GBPS = {1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64}
_REPLAYS_PER_GBPS = 0.06
# reason -> counter of nanoseconds in which clocks were held down for it (DCGM >= 4.2)
THROTTLE = {
    "sw_power_cap": "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
    "sync_boost": "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS",
    "sw_thermal": "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS",
    "hw_thermal": "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
    "power_brake": "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
}


def expected(nodes: Sequence[Node]) -> list[Record]:
    """The inventory's promise, as series. Others must guess it from what was seen before."""
    return [
        Record(
            "node:gpu_expected:count",
            f"vector({node.gpus})",
            "GPUs that the inventory promises on this node.",
            {"node": node.name},
        )
        for node in nodes
        if node.gpus
    ]


def prices(cost: Cost) -> list[Record]:
    """What an hour of a GPU costs, per model that has a price or is seen and covered by `*`."""
    help_ = f"Price of one GPU for one hour, in {cost.currency}."
    priced = {model: price for model, price in cost.gpu_hour.items() if model != "*"}
    records = [
        Record("gpu:price_per_hour", f"vector({price})", help_, {"modelName": model})
        for model, price in priced.items()
    ]
    if "*" in cost.gpu_hour:
        other_models = ", ".join(f"modelName!={quoted(model)}" for model in priced)
        expr = f"({shown_by_exporter('modelName', other_models)}) * {cost.gpu_hour['*']}"
        records.append(Record("gpu:price_per_hour", expr, help_))
    return records


def visible() -> list[Record]:
    """Records of the GPUs that the exporter shows. They come first: others use them."""
    return [
        Record(VISIBLE, shown_by_exporter(GPU), "1 for each GPU that the exporter shows."),
        Record(
            "node:gpu_visible:count",
            f"count by (node) (count by (node, UUID) ({VISIBLE}))",
            "GPUs (distinct UUIDs) that the exporter shows.",
        ),
    ]


# name, field, meaning; means of 5 minutes
_PROFILED = (
    ("sm_active", "DCGM_FI_PROF_SM_ACTIVE", "Share of cycles with a warp on an SM"),
    ("dram_active", "DCGM_FI_PROF_DRAM_ACTIVE", "Share of cycles that moved memory"),
    (
        "tensor_active",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Share of cycles in which tensor cores worked",
    ),
)


def gpus(settings: Settings) -> list[Record]:
    """Per GPU: how busy, how full, how held down."""
    return [*_health(), *_busy(settings), _memory(), *_throttled()]


def _health() -> list[Record]:
    return [
        Record(
            "gpu:ecc_sbe:total",
            f"max by ({GPU}) ({non_blank('DCGM_FI_DEV_ECC_SBE_VOL_TOTAL')})",
            "Corrected memory errors since the GPU's last reset.",
        ),
        Record(
            "gpu:recovery_action:max",
            level("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"),
            "What the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 drain of peer-to-peer "
            "traffic, 4 drain and reset, 5 recovery of its IMEX domain, 6 reset of its bus, "
            "7 reboot of the system.",
        ),
    ]


def _busy(settings: Settings) -> list[Record]:
    return [
        Record(
            "gpu:engine_active:avg5m",
            engine("avg_over_time", "5m"),
            "Share of the last 5 minutes in which the GPU's engine was active, 0 to 1; GPUs "
            "without profiling fields: in which any kernel ran.",
        ),
        *(
            Record(
                f"gpu:{name}:avg5m",
                # of a MIG instance SM_ACTIVE may be above 1 (NVIDIA/DCGM issue 152)
                f"clamp_max({profiled(metric, 'avg_over_time', '5m')}, 1)",
                f"{meaning}, mean of 5 minutes, 0 to 1; absent without profiling fields.",
            )
            for name, metric, meaning in _PROFILED
        ),
        Record(
            "gpu:engine_active:max1h",
            _highest_activity(settings),
            _HIGHEST_ACTIVITY,
            requires=Requirement.POD_LABELS,
        ),
    ]


def _memory() -> Record:
    # of a GPU that pods share, FB_USED has a series for each pod's part beside the whole
    used, free = non_blank("DCGM_FI_DEV_FB_USED"), non_blank("DCGM_FI_DEV_FB_FREE")
    return Record(
        "gpu:memory_used:ratio",
        f"max by ({HOLDER}) (({used}) / on ({DEVICE}) group_left () (\n"
        f"  max by ({DEVICE}) ({used}) + max by ({DEVICE}) ({free}) > 0))",
        "Used device memory as a share of what workloads can have, 0 to 1.",
    )


def _throttled() -> list[Record]:
    return [
        Record(
            "gpu:throttle:ratio5m",
            f"clamp_max(max by ({GPU}) {over('rate', metric, '5m', BLANK_NS)} / 1e9, 1)",
            "Share of the last 5 minutes in which clocks were held down for this reason.",
            {"reason": reason},
        )
        for reason, metric in THROTTLE.items()
    ]


_HIGHEST_ACTIVITY = (
    "Highest engine activity of any sample of the last hour, for GPUs that a pod holds for that "
    f"long; only where at least {IDLE_SHARE:.0%} of the hour's samples are there."
)


def _highest_activity(settings: Settings) -> str:
    needed = int(3600 / seconds(settings.exporter.scrape_interval) * IDLE_SHARE)

    def sampled_enough(metric: str) -> str:
        pod_series = f'{metric}{{pod!=""}}'
        return (
            f"({over('max_over_time', pod_series, '1h')} and count_over_time({pod_series}[1h]) >= "
            f"{needed} and {pod_series})"
        )

    # a recreated pod has its predecessor's name, and must not inherit its hour
    young = "max by (namespace, pod) (time() - kube_pod_created) < 3600"
    return (
        f"(max by ({HOLDER}) ({sampled_enough(ENGINE)}"
        f" unless on ({DEVICE}) {dead_profiling(DEVICE, '1h')})\n"
        f"or max by ({HOLDER}) ({sampled_enough(UTIL)} / 100\n"
        f"  unless on (node, UUID) max_over_time({ENGINE}[1h]) < {BLANK_VALUE}))\n"
        f"unless on (namespace, pod) ({young})"
    )


def links() -> list[Record]:
    """What each GPU's PCIe link does and may do."""
    slot = f"{GPU}, pci_bus_id"
    gen, lanes = "gpu:pcie_gen:max5m", "gpu:pcie_lanes:max5m"
    per_lane = " + ".join(
        f"{gbps * _REPLAYS_PER_GBPS:g} * ({gen} {'==' if number < 6 else '>='} bool {number})"
        for number, gbps in _PCIE_GBPS.items()
    )
    return [
        *(
            Record(
                f"gpu:pcie_{name}:max{window}",
                f"max by ({slot}) (max_over_time({metric}[{window}]) < {BLANK_VALUE})",
                f"Highest PCIe {meaning} in use within {window}, by slot.",
            )
            for name, metric, meaning in (
                ("gen", "DCGM_FI_DEV_PCIE_LINK_GEN", "generation"),
                ("lanes", "DCGM_FI_DEV_PCIE_LINK_WIDTH", "number of lanes"),
            )
            for window in ("5m", "1h")
        ),
        Record(
            "gpu:pcie_replays:allowed",
            f"max by ({GPU}) (ceil({lanes} * ({per_lane})))",
            "PCIe replays a minute that DCGM allows this link.",
        ),
    ]


def recordings(settings: Settings, nodes: Sequence[Node]) -> dict[str, list[Record]]:
    """Every recording rule, by the group it is evaluated in, in order.

    Rules of a group see what those before them recorded in the same evaluation.

    + nodes: the inventory's nodes
    """
    return {
        "static": [*expected(nodes), *prices(settings.cost)],
        "gpus": [
            *visible(),
            *watches(VISIBLE),
            *xids(settings),
            *gpus(settings),
            *links(),
            shares(),
            *activity(),
            *power(),
        ],
        "allocation": allocation(),
        "applications": applications(),
    }
