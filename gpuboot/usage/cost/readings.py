"""What the recorded answers say of each step, and what stands in for a step that says nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import Generic, TypeVar

from gpuboot.usage.series import History
from gpuboot.usage.shares import mig_profile, share

Key = tuple[str, ...]
Table = dict[int, dict[Key, float]]  # step -> values of labels -> minutes
T = TypeVar("T")

UNKNOWN_MODEL = "unknown model"


class Carried(Generic[T]):
    """What is known at some steps, for all steps: what was known last, else what is known first."""

    def __init__(self, values: Mapping[int, T]) -> None:
        self._values = values
        self._times = sorted(values)

    def at(self, step: int, default: T) -> T:
        if not self._times:
            return default
        place = max(0, bisect_right(self._times, step) - 1)
        return self._values[self._times[place]]


def table(history: History, name: str, *labels: str) -> Table:
    """A query's values by step, and by what these labels say. What they do not tell apart adds up.

    Values below 0 do not occur, and would take hours away from somebody: they count as 0.
    """
    by_step: Table = {}
    for series in history.of(name):
        key = tuple(series.labels.get(label, "") for label in labels)
        for step, value in series.values.items():
            of_step = by_step.setdefault(step, {})
            of_step[key] = of_step.get(key, 0.0) + max(0.0, value)
    return by_step


def by_node(by_step: Table, place: int) -> dict[str, Table]:
    """A table of a node's values by step, for each node.

    + place: of the node in the keys; it is taken out of them
    """
    nodes: dict[str, Table] = {}
    for step, values in by_step.items():
        for key, value in values.items():
            of_step = nodes.setdefault(key[place], {}).setdefault(step, {})
            of_step[key[:place] + key[place + 1 :]] = value
    return nodes


@dataclass(frozen=True)
class Layout:
    """How a node's GPUs are offered.

    + shares: resource -> the share of a GPU that one unit of it is
    + stranded: GPUs that are in no instance because of how others were cut
    """

    shares: Mapping[str, float]
    stranded: float = 0.0

    def share(self, resource: str, model: str) -> float:
        """The GPUs in one unit; for a resource that was not offered then, what its name says."""
        known_share = self.shares.get(resource)
        return share(mig_profile(resource), model) if known_share is None else known_share


def layout(
    capacity: Mapping[str, float], devices: Mapping[Key, float], cards: float, full: float,
    model: str,
) -> Layout:  # fmt: skip
    """What each resource of a node is, by what its kubelet offers and its exporter shows.

    Units beyond the GPUs or instances that are there are time slices (or MPS): each is a part.
    Where a card's instances add up to more than the card, as 4g with 3g, each is scaled down.

    + capacity: resource -> units
    + devices: (model, MIG profile) -> how many; profile "" for whole GPUs; {}: nobody knows
    + cards: GPUs that the exporter shows; 0: nobody knows
    + full: GPUs that the node has; those that have vanished do not make time slices of the others
    """
    counts: dict[str, float] = {}
    for (_, profile), count in devices.items():
        name = profile.replace("+", ".")
        counts[name] = counts.get(name, 0.0) + count
    only = _only_profile(counts)
    profiles = {resource: mig_profile(resource) or only for resource in capacity}
    divided_cards = cards - counts.get("", 0.0) if devices else 0.0
    hidden = max(0.0, full - cards) if devices else 0.0
    shares, cut = {}, 0.0
    for resource, profile in profiles.items():
        if profile:
            instances = (
                counts.get(profile, 0.0) * (divided_cards + hidden) / max(divided_cards, 1e-9)
            )
            shares[resource] = share(profile, model) / _slices(capacity[resource], instances)
            cut += capacity[resource] * shares[resource]
    carved = _carved_cards(divided_cards, divided_cards + hidden, cut)
    if cut > carved > 0:
        shares = {resource: part * carved / cut for resource, part in shares.items()}
    for resource, profile in profiles.items():
        if not profile:
            shares[resource] = 1.0 / _slices(capacity[resource], full - carved)
    return Layout(shares, max(0.0, carved - cut) if cut else 0.0)


def _slices(units: float, devices: float) -> int:
    """Time slices of each device: units beyond the devices that exist."""
    return max(1, round(units / devices)) if devices > 0 else 1


def _carved_cards(minimum: float, maximum: float, cut: float) -> float:
    """Cards that are divided into instances, of which the hidden ones may or may not be.

    + minimum: divided cards that the exporter shows; maximum: the same and all cards that it lacks
    + cut: cards that the offered instances make up
    """
    cards = range(ceil(round(minimum, 6)), floor(round(maximum, 6)) + 1)
    if maximum - minimum < 1e-6 or not cards:
        return min(max(minimum, cut), maximum)
    return min(cards, key=lambda count: abs(count - cut))


def _only_profile(physical: Mapping[str, float]) -> str:
    """What `nvidia.com/gpu` is on a node with MIG strategy single; "" for whole GPUs."""
    if physical.get("") or not physical:
        return ""
    return max(physical, key=lambda profile: physical[profile])
