"""The GPUs of one node, step by step: how many, of which model, offered how, held by whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuboot.usage.cost.energy import Energy
from gpuboot.usage.cost.readings import (
    UNKNOWN_MODEL,
    Carried,
    Key,
    Layout,
    Table,
    by_node,
    layout,
    table,
)
from gpuboot.usage.series import History
from gpuboot.usage.shares import share

# query -> labels by which its values are told apart beside the node
_LABELS: Mapping[str, Key] = {
    "held": ("namespace", "pod", "resource"),
    "capacity": ("resource",),
    "free": ("resource",),
    "closed": ("resource",),
    "reported": (),
    "promised": (),
    "promised_minutes": (),
    "cards": ("modelName",),
    "devices": ("modelName", "GPU_I_PROFILE"),
    "seen": (),
    "used": ("namespace", "pod", "modelName", "GPU_I_PROFILE"),
    "sm": ("namespace", "pod", "modelName", "GPU_I_PROFILE"),
    "measured": ("namespace", "pod", "modelName", "GPU_I_PROFILE"),
    "power_pod": ("namespace", "pod"),
    "power_node": (),
    "energy": (),
}
_WITH_GPUS = ("promised", "cards", "capacity", "held")
_TELLING = ("promised_minutes", "reported", "seen")
_ACTIVE = ("measured", "used", "sm")
_EMPTY: Mapping[Key, float] = {}


def watched(history: History) -> dict[int, float]:
    """Minutes of each step in which anything was told of any node. The others are gaps."""
    minutes: dict[int, float] = {}
    for name in _TELLING:
        for step, values in table(history, name, "node").items():
            minutes[step] = max(minutes.get(step, 0.0), *values.values())
    return minutes


def nodes(history: History) -> Iterator[Node]:
    """Every node that has or had GPUs, by name."""
    tables = {
        name: by_node(table(history, name, "node", *labels), 0) for name, labels in _LABELS.items()
    }
    times = {step: minutes for step, minutes in watched(history).items() if minutes > 0}
    names = {
        node for query in _WITH_GPUS for node, entries in tables[query].items()
        if any(value for values in entries.values() for value in values.values())
    }  # fmt: skip
    for name in sorted(names):
        yield Node(name, {query: entries.get(name, {}) for query, entries in tables.items()}, times)


@dataclass(frozen=True)
class _Tables:
    """A node's values by query and step."""

    tables: Mapping[str, Table]

    def at(self, query: str, step: int) -> Mapping[Key, float]:
        return self.tables[query].get(step, _EMPTY)

    def total(self, query: str, step: int) -> float:
        return sum(self.at(query, step).values())


class Node:
    """A node with GPUs.

    + tables: what each query says of it
    + times: step -> minutes in which anything was told of any node; steps that are gaps are absent
    """

    def __init__(self, name: str, tables: Mapping[str, Table], times: Mapping[int, float]) -> None:
        self.name = name
        self._tables = _Tables(tables)
        self._models = Carried({step: _weights(tables["cards"][step]) for step in tables["cards"]})
        self._max_cards = self._most_cards()
        self._layouts = Carried(self._known_layouts())
        self._active = {name: self._activity(tables[name]) for name in _ACTIVE}
        rates = {step: self._reported_minutes(step) / minutes for step, minutes in times.items()}
        self._rates = Carried(rates)

    def models(self, step: int) -> Mapping[str, float]:
        """Model -> its share of the node's GPUs; 1 in all."""
        return self._models.at(step, {UNKNOWN_MODEL: 1.0})

    def held_minutes(self, step: int) -> dict[Key, float]:
        """GPU minutes that pods held, by (namespace, pod)."""
        minutes: dict[Key, float] = {}
        for (namespace, pod, resource), units in self._tables.at("held", step).items():
            pods = namespace, pod
            minutes[pods] = minutes.get(pods, 0.0) + units * self._share(resource, step)
        return minutes

    def installed(self, step: int, full: float, watched_minutes: float) -> float:
        """GPU minutes that are there: the most that inventory, exporter or kubelet names.

        In a gap there is what was there before it; at the beginning, what was there after it.
        """
        known_minutes = self._reported_minutes(step) if watched_minutes else 0.0
        return known_minutes + (full - watched_minutes) * self._rates.at(step, 0.0)

    def unheld(self, step: int, full: float, watched_minutes: float) -> dict[str, float]:
        """GPU minutes that no pod held, by what is known of them; `missing` is what is left."""
        units = {name: self._gpus(name, step) for name in ("capacity", "free", "closed")}
        held_units: dict[str, float] = {}
        for (_, _, resource), count in self._tables.at("held", step).items():
            held_units[resource] = held_units.get(resource, 0.0) + count
        unhealthy = sum(
            max(0.0, units["capacity"][resource]
                - held_units.get(resource, 0.0) * self._share(resource, step)
                - units["free"].get(resource, 0.0) - units["closed"].get(resource, 0.0))
            for resource in units["capacity"]
        )  # fmt: skip
        reported = self._tables.total("reported", step)
        present = max(self._tables.total(name, step) for name in _TELLING)
        silent = self._reported_minutes(step) * (1 - reported / present) if present else 0.0
        return {
            "free": sum(units["free"].values()),
            "closed": sum(units["closed"].values()),
            "unhealthy": unhealthy,
            "unknown": silent + (full - watched_minutes) * self._rates.at(step, 0.0),
            "stranded": self._layouts.at(step, Layout({})).stranded * reported,
        }

    def activity(self, step: int, pod: Key) -> tuple[float, float, float]:
        """GPU minutes of a pod: measured; its GPUs' engines active; their SMs active."""
        measured, used, sm = (
            self._active[query].get(step, _EMPTY).get(pod, 0.0) for query in _ACTIVE
        )
        return measured, used, sm

    def energy(self, step: int) -> Energy:
        """The energy by the GPUs' counters; by their power where they have none."""
        watts = self._tables.total("power_node", step)
        counted = self._tables.total("energy", step)
        pods = self._tables.at("power_pod", step)
        total_watts = max(watts, sum(pods.values()))
        shares = {pod: part / total_watts for pod, part in pods.items()} if total_watts else {}
        return Energy(counted or watts / 60_000, shares)

    @staticmethod
    def _activity(activity: Table) -> Table:
        """The activity by (namespace, pod) alone, instances counted as shares of GPUs."""
        pods: Table = {}
        for step, values in activity.items():
            of_step = pods.setdefault(step, {})
            for (namespace, pod, model, profile), minutes in values.items():
                part = minutes * share(profile, model)
                of_step[namespace, pod] = of_step.get((namespace, pod), 0.0) + part
        return pods

    def _share(self, resource: str, step: int) -> float:
        return self._layouts.at(step, Layout({})).share(resource, _main_model(self.models(step)))

    def _gpus(self, query: str, step: int) -> dict[str, float]:
        """Units of resources, counted as GPUs."""
        return {
            resource: units * self._share(resource, step)
            for (resource,), units in self._tables.at(query, step).items()
        }

    def _reported_minutes(self, step: int) -> float:
        """GPU minutes of a step that kubelet, pods, inventory or exporter name: the most."""
        return max(self._scheduled_minutes(step), self._counted(step))

    def beyond(self, step: int) -> float:
        """GPU minutes that are held or offered, and are more than anybody counted GPUs."""
        counted = self._counted(step)
        return max(0.0, self._scheduled_minutes(step) - counted) if counted else 0.0

    def _counted(self, step: int) -> float:
        """GPU minutes that inventory and exporter, which count cards, name."""
        present = max(self._tables.total(name, step) for name in ("reported", "seen"))
        guessed = present * self._max_cards.get(_main_model(self.models(step)), 0.0)
        return max(*(self._tables.total(name, step) for name in ("cards", "promised")), guessed)

    def _scheduled_minutes(self, step: int) -> float:
        """GPU minutes that the kubelet and the pods, which count resources, name."""
        held_units: dict[Key, float] = {}
        for (*_, resource), units in self._tables.at("held", step).items():
            held_units[resource,] = held_units.get((resource,), 0.0) + units
        capacity = self._tables.at("capacity", step)
        return sum(
            max(capacity.get(key, 0.0), held_units.get(key, 0.0)) * self._share(key[0], step)
            for key in {*capacity, *held_units}
        )

    def _most_cards(self) -> dict[str, float]:
        """Model -> most GPUs that were shown of it; nothing where the inventory says how many."""
        if self._tables.tables["promised"]:
            return {}
        max_counts: dict[str, float] = {}
        for step, cards in self._tables.tables["cards"].items():
            minutes = self._tables.total("seen", step)
            for (model,), count in cards.items():
                if minutes and len(cards) == 1:
                    max_counts[model] = max(max_counts.get(model, 0.0), count / minutes)
        return max_counts

    def _known_layouts(self) -> dict[int, Layout]:
        """The layouts of the best known steps: all cards shown, some shown, cards promised.

        A card that has vanished leaves open whether instances or whole GPUs went with it, so a
        step that lacks one is read only where no step shows all.
        """
        complete: dict[int, Layout] = {}
        partial: dict[int, Layout] = {}
        inventoried: dict[int, Layout] = {}
        for step, capacity in self._tables.tables["capacity"].items():
            model = _main_model(self.models(step))
            cards = self._mean("cards", "seen", step)
            full = max(cards, self._mean("promised", "promised_minutes", step),
                       self._max_cards.get(model, 0.0))  # fmt: skip
            reported, observed = (self._tables.total(name, step) for name in ("reported", "seen"))
            if not reported or not any(capacity.values()) or not (observed or full):
                continue
            devices = {
                key: n / observed for key, n in self._tables.at("devices", step).items() if observed
            }
            units = {key[0]: count / reported for key, count in capacity.items() if count}
            layouts = inventoried if not observed else partial if cards < full else complete
            layouts[step] = layout(units, devices, cards, full, model)
        return complete or partial or inventoried

    def _mean(self, query: str, minutes: str, step: int) -> float:
        """The mean number of GPUs over the minutes in which they were counted."""
        counted = self._tables.total(minutes, step)
        return self._tables.total(query, step) / counted if counted else 0.0


def _weights(cards: Mapping[Key, float]) -> dict[str, float]:
    total = sum(cards.values())
    if not total:
        return {UNKNOWN_MODEL: 1.0}
    return {model or UNKNOWN_MODEL: count / total for (model,), count in cards.items() if count}


def _main_model(models: Mapping[str, float]) -> str:
    """The model that most of the node's GPUs are of."""
    return max(models, key=lambda model: models[model])
