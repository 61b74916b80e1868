"""What a report is made of: sums of hours, energy and money, by whom or which team they concern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from gpuboot.usage.cost.ledger import TENANT, Ledger
from gpuboot.usage.cost.period import Period
from gpuboot.usage.cost.prices import Prices
from gpuboot.usage.cost.readings import Carried, table
from gpuboot.usage.series import History

UNOWNED = "__unowned__"


class Teams:
    """The team of each namespace at each time; `__unowned__` where nobody says so."""

    def __init__(self, history: History) -> None:
        labels: dict[str, dict[int, dict[str, float]]] = {}
        for step, values in table(history, "teams", "namespace", "label_team").items():
            for (namespace, team), minutes in values.items():
                labels.setdefault(namespace, {}).setdefault(step, {})[team] = minutes
        self._labels = {
            namespace: Carried(team_minutes) for namespace, team_minutes in labels.items()
        }

    def of(self, namespace: str, step: int) -> str:
        """The team that has the namespace for most of a step."""
        if namespace not in self._labels:
            return UNOWNED
        minutes = self._labels[namespace].at(step, {})
        return max(minutes, key=lambda team: (minutes[team], team))


KEYS = ("day", "team", "namespace", "pod", "model")


@dataclass(frozen=True, order=True)
class LineKey:
    """What a line is about. Lines of GPUs that nobody held have no team, namespace and pod.

    + kind: tenant, unallocated or unavailable; reason: why nobody held them, "" for a tenant
    """

    day: str
    kind: str
    reason: str
    team: str
    namespace: str
    pod: str
    model: str


@dataclass
class Sums:
    """Units: GPU hours, kWh, and the currency of the prices.

    + hours: allocated; of a tenant: used + idle + unmeasured
    + sm: in which SMs worked, a part of what is used
    + unpriced: hours of models without a price; they cost nothing here
    """

    hours: float = 0.0
    used: float = 0.0
    idle: float = 0.0
    unmeasured: float = 0.0
    sm: float = 0.0
    kwh: float = 0.0
    gpu_cost: float = 0.0
    energy_cost: float = 0.0
    unpriced: float = 0.0

    @property
    def efficiency(self) -> float | None:
        """Used as a share of allocated; None where nothing was allocated."""
        allocated = self.used + self.idle + self.unmeasured
        return self.used / allocated if allocated else None

    @property
    def total_cost(self) -> float:
        return self.gpu_cost + self.energy_cost

    def add(self, addend: Sums) -> None:
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(addend, name))


_NAMES = tuple(column.name for column in fields(Sums))
Lines = dict[LineKey, Sums]


def lines(ledger: Ledger, period: Period, teams: Teams, prices: Prices) -> Lines:
    """The ledger by day, team, namespace, pod and model, with prices."""
    sums_by_line: Lines = {}
    days = {step: period.day(step) for step in period.window.steps}
    for entry in ledger.entries:
        tenant = entry.kind == TENANT
        key = LineKey(
            days[entry.step], entry.kind, entry.reason,
            teams.of(entry.namespace, entry.step) if tenant else "",
            entry.namespace, entry.pod, entry.model,
        )  # fmt: skip
        hours = entry.minutes / 60
        price = prices.of(entry.model)
        idle = max(0.0, entry.minutes - entry.used - entry.unmeasured) if tenant else 0.0
        sums_by_line.setdefault(key, Sums()).add(
            Sums(
                hours, entry.used / 60, idle / 60, entry.unmeasured / 60,
                entry.sm / 60, entry.kwh,
                gpu_cost=hours * (price or 0.0),
                energy_cost=entry.kwh * prices.pue * (prices.kwh or 0.0),
                unpriced=hours if price is None else 0.0,
            )
        )  # fmt: skip
    return sums_by_line


def grouped(sums_by_line: Mapping[LineKey, Sums], by: Iterable[str]) -> dict[tuple[str, ...], Sums]:
    """Sums by kind and these keys: (kind, *values of `by`), tenants first, most hours first."""
    keys = [key for key in KEYS if key in set(by)]
    groups: dict[tuple[str, ...], Sums] = {}
    for key, sums in sums_by_line.items():
        name = (key.kind, *(getattr(key, attribute) for attribute in keys))
        groups.setdefault(name, Sums()).add(sums)
    days = keys.index("day") + 1 if "day" in keys else 0
    order = sorted(
        groups.items(),
        key=lambda item: (
            item[0][days] if days else "", item[0][0] != TENANT, item[0][0],
            -item[1].hours, item[0],
        ),
    )  # fmt: skip
    return dict(order)


def total(parts: Iterable[Sums]) -> Sums:
    """The sum of several sums."""
    result = Sums()
    for sums in parts:
        result.add(sums)
    return result
