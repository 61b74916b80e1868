"""Recording rules: what dashboards, alerts and autoscalers ask for again and again, by name.

Names say `level:what:how`. Each is made to survive what happens in a cluster: GPUs without
profiling fields, no kube-state-metrics, MIG (a GPU is one UUID, whatever it is cut into), pods
that share a GPU, exporters that restart or stand there twice during a rollout, completed pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuboot.nodes import Node
from gpuboot.rules.promql import DEVICE, ENGINE, GPU, HOLDER, UTIL, engine, level, now_and, quoted
from gpuboot.rules.record import Record
from gpuboot.rules.recording_use import activity, allocation, power
from gpuboot.settings import Cost, Settings
from gpuboot.settings.base import seconds

IDLE_SHARE = 0.8  # of an hour's samples; fewer (a profiling pause, a new pod) tell nothing
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
    named = {model: price for model, price in cost.gpu_hour.items() if model != "*"}
    found = [
        Record("gpu:price_per_hour", f"vector({price})", help_, {"modelName": model})
        for model, price in named.items()
    ]
    if "*" in cost.gpu_hour:
        others = ", ".join(f"modelName!={quoted(model)}" for model in named)
        series = f"DCGM_FI_DEV_GPU_TEMP{{{others}}}" if others else "DCGM_FI_DEV_GPU_TEMP"
        expr = f"group by (modelName) ({series}) * {cost.gpu_hour['*']}"
        found.append(Record("gpu:price_per_hour", expr, help_))
    return found


def gpus(settings: Settings) -> list[Record]:
    """Per GPU: how busy, how full, how held down."""
    return [
        Record(
            "node:gpu_visible:count",
            "count by (node) (count by (node, UUID) (DCGM_FI_DEV_GPU_TEMP))",
            "GPUs (distinct UUIDs) that the exporter shows.",
        ),
        Record(
            "gpu:xid_errors:total",
            level("DCGM_EXP_XID_ERRORS_TOTAL", f"{GPU}, xid"),
            "XIDs since the exporter started, by code; goes on when the GPU's pod changes.",
        ),
        *(
            Record(
                f"gpu:xid_errors:new{window}",
                _new("gpu:xid_errors:total", window),
                f"1 for every XID that was counted in the last {window}.",
            )
            for window in ("2m", "10m")
        ),
        Record(
            "gpu:ecc_sbe:total",
            level("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"),
            "Corrected memory errors since the GPU's last reset.",
        ),
        Record(
            "gpu:engine_active:avg5m",
            engine("avg_over_time", "5m"),
            "Share of the last 5 minutes in which the GPU's engine was active, 0 to 1; GPUs "
            "without profiling fields: in which any kernel ran.",
        ),
        *(
            Record(
                f"gpu:{name}:avg5m",
                f"max by ({HOLDER}) ({now_and('avg_over_time', metric, '', '5m')})",
                f"{meaning}, mean of 5 minutes, 0 to 1; absent without profiling fields.",
            )
            for name, metric, meaning in (
                ("sm_active", "DCGM_FI_PROF_SM_ACTIVE", "Share of cycles with a warp on an SM"),
                ("dram_active", "DCGM_FI_PROF_DRAM_ACTIVE", "Share of cycles that moved memory"),
                (
                    "tensor_active",
                    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                    "Share of cycles in which tensor cores worked",
                ),
            )
        ),
        Record("gpu:engine_active:max1h", _busiest(settings), _BUSIEST),
        Record(
            "gpu:memory_used:ratio",
            # pods that share a GPU are told their own part of FB_USED, beside the GPU's whole
            f"max by ({HOLDER}) (DCGM_FI_DEV_FB_USED / on ({DEVICE}) group_left () (\n"
            f"  max by ({DEVICE}) (DCGM_FI_DEV_FB_USED)"
            f" + max by ({DEVICE}) (DCGM_FI_DEV_FB_FREE) > 0))",
            "Used device memory as a share of what workloads can have, 0 to 1.",
        ),
        *(
            Record(
                "gpu:throttle:ratio5m",
                f"clamp_max(max by ({GPU}) (rate({metric}[5m])) / 1e9, 1)",
                "Share of the last 5 minutes in which clocks were held down for this reason.",
                {"reason": reason},
            )
            for reason, metric in THROTTLE.items()
        ),
    ]


def _new(series: str, window: str) -> str:
    """Which counts of errors, each a series that is born with its first error, have gone up.

    There are four ways, since `increase` of a newborn series is 0, whatever it is born with, and
    since the counters go away when the exporter restarts:

    1. it rose;
    2. it is higher than when it was last seen, before nobody looked for a while;
    3. it has not been seen for six hours, or ever;
    4. it was not there before, although the GPU was watched (first error after a restart).
    """
    before = f"last_over_time({series}[6h] offset {window})"
    watched = f"max by (node, UUID) (DCGM_FI_DEV_GPU_TEMP offset {window})"
    return (
        f"group by ({GPU}, xid) (\n"
        f"  increase({series}[{window}]) > 0\n"
        f"  or {series} > {before}\n"
        f"  or ({series} unless {before})\n"
        f"  or ({series} unless {series} offset {window}) and on (node, UUID) {watched}\n)"
    )


_BUSIEST = (
    "Highest engine activity of any sample of the last hour, for GPUs that a pod holds; only where "
    f"at least {IDLE_SHARE:.0%} of the hour's samples are there."
)


def _busiest(settings: Settings) -> str:
    needed = int(3600 / seconds(settings.exporter.scrape_interval) * IDLE_SHARE)

    def enough(metric: str) -> str:
        held = f'{metric}{{pod!=""}}'
        return f"(max_over_time({held}[1h]) and count_over_time({held}[1h]) >= {needed} and {held})"

    return (
        f"max by ({HOLDER}) {enough(ENGINE)}\n"
        f"or max by ({HOLDER}) ({enough(UTIL)} / 100\n"
        f"  unless on (node, UUID) max_over_time({ENGINE}[1h]))"
    )


def recordings(settings: Settings, nodes: Sequence[Node]) -> dict[str, list[Record]]:
    """Every recording rule, by the group it is evaluated in, in order.

    Rules of a group see what the ones before them have just made.

    + nodes: the inventory's nodes
    """
    return {
        "static": [*expected(nodes), *prices(settings.cost)],
        "gpus": [*gpus(settings), *activity(), *power()],
        "allocation": allocation(),
    }
