"""PromQL of GPU hours, held and used, and of what they cost.

They mean what `gpuboot cost` reports (docs/cost.md), which knows more of the cards: odd MIG
layouts, time slices under the name of whole GPUs, several models in one node.
"""

from __future__ import annotations

from fractions import Fraction

from gpuboot.config.settings import Cost
from gpuboot.hosts import mig_profiles
from gpuboot.monitoring.dashboards.variables import HELD_BY
from gpuboot.monitoring.rules.promql import DEVICE, shown_by_exporter
from gpuboot.monitoring.rules.recording_use import part_of_device

GPU_HOURS = "suffix:GPU h"  # Grafana's own unit of hours would call 48 of them "2 days"
IN = 'namespace=~"$namespace"'
NAMESPACES = f"{{{IN}}}"

# What share of a GPU the usual MIG profiles are, by their compute slices.
_USUAL = {
    **{slices: Fraction(slices, 7) for slices in (1, 2, 4, 7)},
    3: Fraction(1, 2),
}


def shares() -> dict[str, Fraction]:
    """Regular expression of MIG profiles -> their share of a GPU; the first that matches counts.

    It is the larger of compute and memory slices, each as a share of the card's. A name that cards
    give to different parts (1g.10gb of an A100 with 40 GB, and with 80) counts as usual.
    """
    by_name: dict[str, set[Fraction]] = {}
    for card in mig_profiles.CARDS:
        memory = max(profile.memory for profile in card.profiles)
        for profile in card.profiles:
            compute, gigabytes = mig_profiles.size(profile.name)
            share = max(Fraction(compute, card.compute), Fraction(profile.memory, memory))
            by_name.setdefault(f"{compute}g[._]{gigabytes}gb", set()).add(share)
    unusual: dict[Fraction, list[str]] = {}
    for name, parts in sorted(by_name.items()):
        if _USUAL[int(name[0])] not in parts:
            unusual.setdefault(max(parts), []).append(name)
    return {
        **{f"({'|'.join(names)})([._+-].+)?": share for share, names in unusual.items()},
        **{f"{slices}g[._].+": share for slices, share in _USUAL.items()},
    }


def _weighed(series: str, gpu_matcher: str, instance: str) -> str:
    """PromQL of a series in which MIG instances count by their share of a GPU.

    + series: metric and matchers, without the closing brace
    + gpu_matcher, instance: matchers of what is a GPU, and of a profile in place of `%s`
    """
    parts = ((instance % pattern, share) for pattern, share in shares().items())
    return " or ".join(
        f"{series},{matcher}}} * {share}" for matcher, share in ((gpu_matcher, "1"), *parts)
    )


_TIME_SLICES = 'resource="nvidia_com_gpu_shared"'
HELD_GPUS = (
    _weighed(
        f"namespace_pod:gpu_requested:sum{{{HELD_BY}",
        'resource="nvidia_com_gpu"',
        'resource=~"nvidia_com_mig_%s"',
    )
    # a time slice is as many GPUs as the node shows for each that its kubelet offers
    + f" or namespace_pod:gpu_requested:sum{{{HELD_BY},{_TIME_SLICES}}} / on (node) group_left () ("
    "node:gpu_capacity:sum / on (node) node:gpu_visible:count)"
)
# One price for each node: the mean of its GPUs, as no request says which of them a pod got.
NODE_PRICE = (
    f"avg by (node) (0 * {shown_by_exporter('node, UUID, modelName')}"
    " + on (modelName) group_left () gpu:price_per_hour)"
)
# Pods that share a GPU or MIG instance all show all of its activity: each gets its part.
USED = (
    f"max by (namespace, pod, {DEVICE}) ("
    + _weighed(
        f'gpu:engine_active:avg5m{{{HELD_BY},pod!=""',
        'GPU_I_PROFILE=""',
        'GPU_I_PROFILE=~"%s"',
    )
    + f") * on (namespace, pod, {DEVICE}) group_left () {part_of_device()}"
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


PRICED = f"({HELD_GPUS}) * on (node) group_left () {NODE_PRICE}"
IDLE_HOURS = f"({hours(HELD_GPUS, 'namespace, pod')}) - ({hours(USED, 'namespace, pod')})"


def money(cost: Cost) -> str:
    """The unit of the currency in Grafana."""
    return (
        f"currency{cost.currency}"
        if cost.currency in _KNOWN_CURRENCIES
        else f"currency:{cost.currency}"
    )


# Currencies that Grafana has a sign for (its value formats, category Currency), and we need.
_KNOWN_CURRENCIES = {
    "USD",
    "GBP",
    "EUR",
    "JPY",
    "DKK",
    "ISK",
    "NOK",
    "SEK",
    "CZK",
    "CHF",
    "PLN",
    "ZAR",
    "INR",
}
