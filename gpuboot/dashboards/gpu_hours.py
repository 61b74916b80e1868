"""PromQL of GPU hours, held and used, and of what they cost."""

from __future__ import annotations

from gpuboot.config.settings import Cost
from gpuboot.dashboards.variables import HELD_BY

IN = 'namespace=~"$namespace"'
NAMESPACES = f"{{{IN}}}"

# What share of a GPU each resource is: the larger of compute slices / 7 and memory slices / 8, as
# NVIDIA's MIG profiles divide data centre GPUs.
SHARES = {"1g": "1 / 7", "2g": "2 / 7", "3g": "1 / 2", "4g": "4 / 7", "7g": "1"}


def _weighed(series: str, whole: str, instance: str) -> str:
    """Whole GPUs, and MIG instances by their share.

    + series: metric and matchers, without the closing brace
    + whole, instance: matchers of what is a GPU, and of a profile in place of `%s`
    """
    parts = ((instance % profile, share) for profile, share in SHARES.items())
    return " or ".join(
        f"{series},{matcher}}} * {share}" for matcher, share in ((whole, "1"), *parts)
    )


HELD = _weighed(
    f"namespace_pod:gpu_requested:sum{{{HELD_BY}",
    'resource="nvidia_com_gpu"',
    'resource=~"nvidia_com_mig_%s_.+"',
)
# One price for each node: its dearest model's. Nodes with several models are rare.
NODE_PRICE = (
    "max by (node) (max by (node, modelName) (DCGM_FI_DEV_GPU_TEMP * 0)"
    " + on (modelName) group_left () gpu:price_per_hour)"
)
# A GPU or MIG instance counts once for each pod that shares it.
USED = (
    "max by (namespace, pod, node, UUID, GPU_I_ID) ("
    + _weighed(
        f'gpu:engine_active:avg5m{{{HELD_BY},pod!=""',
        'GPU_I_PROFILE=""',
        'GPU_I_PROFILE=~"%s[.].+"',
    )
    + ")"
)
# Recorded: what pods share is divided among them. The meter itself stands on every MIG slice.
POWER = f"namespace:gpu_power:sum{NAMESPACES}"


def hours(vector: str, by: str = "") -> str:
    """The integral over the dashboard's time range, in hours: minutes counted one by one.

    Not a mean times the range: a mean knows only the samples that are there, and would bill a
    pod of one hour for the whole day.
    """
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} (sum_over_time(({vector})[$__range:1m])) / 60"


PRICED = f"({HELD}) * on (node) group_left () {NODE_PRICE}"
IDLE_HOURS = f"({hours(HELD, 'namespace, pod')}) - ({hours(USED, 'namespace, pod')})"


def money(cost: Cost) -> str:
    """Grafana's unit for the currency."""
    return f"currency{cost.currency}" if cost.currency in _KNOWN else f"currency:{cost.currency}"


# Currencies that Grafana has a sign for (its value formats, category Currency), and we need.
_KNOWN = {"USD", "GBP", "EUR", "JPY", "DKK", "ISK", "NOK", "SEK", "CZK", "CHF", "PLN", "ZAR", "INR"}
