"""Who bears GPUs that nobody held: the platform, or the namespaces by a rule that is named.

Shared out are the hours and the cost of each day and model by themselves, so that who uses one
model does not pay for another that stands idle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.cost.ledger import TENANT, UNALLOCATED, UNAVAILABLE
from gpuboot.usage.cost.lines import LineKey, Lines, Sums
from gpuboot.usage.cost.period import Period
from gpuboot.usage.cost.readings import table
from gpuboot.usage.cost.teams import Teams
from gpuboot.usage.series import History
from gpuboot.usage.shares import mig_profile, share

Policy = Literal["none", "even", "allocated", "quota"]
POLICIES: tuple[str, ...] = get_args(Policy)
Weights = dict[str, float]  # namespace -> its part


@dataclass(frozen=True)
class Shared:
    """What is shared out how.

    + unallocated: GPUs that were free; unavailable: GPUs that could not be had
    + each `none`: the platform's; `even`: the same for every namespace that held GPUs of the model
      on the day; `allocated`: by the GPU hours that it held; `quota`: by its ResourceQuota

    Raises `CostError` for another word.
    """

    unallocated: str = "none"
    unavailable: str = "none"

    def __post_init__(self) -> None:
        for name in (self.unallocated, self.unavailable):
            if name not in POLICIES:
                raise CostError(f"there is no policy {name!r}", f"one of {', '.join(POLICIES)}")

    def of(self, kind: str) -> str:
        return {UNALLOCATED: self.unallocated, UNAVAILABLE: self.unavailable}[kind]


def quotas(history: History, period: Period) -> dict[str, Weights]:
    """Day -> GPU minutes that each namespace's quotas allow."""
    days: dict[str, Weights] = {}
    for step, values in table(history, "quota", "namespace", "resource").items():
        weights = days.setdefault(period.day(step), {})
        for (namespace, resource), units in values.items():
            part = units * share(mig_profile(resource))
            weights[namespace] = weights.get(namespace, 0.0) + part
    return days


def share_out(
    lines: Lines, shared: Shared, quota: Mapping[str, Weights], team: Callable[[str, str], str]
) -> Lines:
    """The lines with what each bears of GPUs that nobody held.

    + quota: of `quotas`
    + team: of a namespace on a day, for a namespace that held nothing
    """
    result = {key: replace(sums) for key, sums in lines.items()}
    hours_by_line: dict[tuple[str, str], dict[LineKey, float]] = {}
    for key, sums in lines.items():
        if key.kind == TENANT and sums.hours > 0:
            hours_by_line.setdefault((key.day, key.model), {})[key] = sums.hours
    for key, sums in lines.items():
        if key.kind == TENANT or shared.of(key.kind) == "none":
            continue
        holders = hours_by_line.get((key.day, key.model), {})
        weights = _weights(shared.of(key.kind), holders, quota.get(key.day, {}))
        total_weight = sum(weights.values())
        if total_weight <= 0:
            continue
        for heir, weight in weights.items():
            part = weight / total_weight
            line = heir if heir.day else replace(
                heir, day=key.day, model=key.model, team=team(heir.namespace, key.day)
            )  # fmt: skip
            bears = Sums(
                shared_hours=sums.hours * part,
                shared_cost=(sums.gpu_cost + sums.energy_cost) * part,
            )
            result.setdefault(line, Sums()).add(bears)
            deduction = Sums(shared_hours=-bears.shared_hours, shared_cost=-bears.shared_cost)
            result[key].add(deduction)
    return result


def _weights(policy: str, holders: Mapping[LineKey, float], quota: Weights) -> dict[LineKey, float]:
    """Line -> its part. Within a namespace pods bear it by the hours that they held."""
    by_namespace: Weights = {}
    for key, hours in holders.items():
        by_namespace[key.namespace] = by_namespace.get(key.namespace, 0.0) + hours
    if policy == "allocated":
        return dict(holders)
    shares = quota if policy == "quota" else dict.fromkeys(by_namespace, 1.0)
    weights = {
        key: shares.get(key.namespace, 0.0) * hours / by_namespace[key.namespace]
        for key, hours in holders.items()
    }
    for namespace, part in shares.items():
        if namespace not in by_namespace:
            weights[LineKey("", TENANT, "", "", namespace, "", "")] = part
    return weights


def team_on(teams: Teams, period: Period) -> Callable[[str, str], str]:
    """The team of a namespace when a day begins."""
    return lambda namespace, day: teams.of(namespace, period.ends_of(day)[0])
