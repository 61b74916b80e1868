"""A report of costs, and the proof that no hour of it is lost or counted twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.usage.cost.cost_lines import UNOWNED, Lines, Sums, Teams, grouped, lines, total
from gpuboot.usage.cost.errors import ConservationError, CostError
from gpuboot.usage.cost.ledger import REASONS, TENANT, UNALLOCATED, UNAVAILABLE, Ledger, ledger
from gpuboot.usage.cost.period import Period
from gpuboot.usage.cost.prices import Prices
from gpuboot.usage.series import History

TOLERANCE = 1e-6  # of a GPU hour, and of the sum where that is larger than 1
_CONTRADICTION = 0.01  # of a node's installed hours


@dataclass(frozen=True)
class Proof:
    """Where the installed GPU hours of one model went.

    + installed: from what the nodes have, not from the other numbers
    """

    model: str
    tenants: float
    unallocated: float
    unavailable: float
    installed: float

    @property
    def difference(self) -> float:
        return self.tenants + self.unallocated + self.unavailable - self.installed

    @property
    def holds(self) -> bool:
        return abs(self.difference) <= TOLERANCE * max(1.0, self.installed)


@dataclass(frozen=True)
class Report:
    """All that the outputs are made of.

    + lines: by day, kind, team, namespace, pod and model
    + proofs: one for each model
    + reasons: why GPUs were held by nobody -> GPU hours
    + sm_known: whether the GPUs have profiling fields, and hours of active SMs
    + notes: what a reader should know about the numbers
    """

    cluster: str
    period: Period
    prices: Prices
    lines: Lines
    proofs: tuple[Proof, ...]
    reasons: Mapping[str, float]
    sm_known: bool
    notes: tuple[str, ...] = field(default=())

    @property
    def total_proof(self) -> Proof:
        """The proof of all models together."""
        sums = [
            sum(getattr(proof, name) for proof in self.proofs)
            for name in ("tenants", "unallocated", "unavailable", "installed")
        ]
        return Proof("all", *sums)


def report(history: History, period: Period, prices: Prices) -> Report:
    """The report of what `gpuboot.usage.cost.cost_question` gave.

    Raises `CostError` where there is nothing to report or sources contradict each other, and
    `ConservationError` where the hours do not add up.
    """
    gpu_ledger = ledger(history)
    if not gpu_ledger.entries:
        raise CostError(
            "no GPU is known in this time",
            "another time, or `gpuboot verify INVENTORY`: it says whether Prometheus gets GPU "
            "metrics",
        )
    contradictions = _contradictions(gpu_ledger)
    charged = lines(gpu_ledger, period, Teams(history), prices)
    result = Report(
        str(history.metadata.get("cluster", "")),
        period,
        prices,
        charged,
        _proofs(charged, gpu_ledger),
        _reasons(charged),
        bool(history.of("sm")),
        (*contradictions, *_notes(charged, prices)),
    )
    check(result, gpu_ledger)
    return result


def check(result: Report, gpu_ledger: Ledger) -> None:
    """Raise `ConservationError` unless hours, energy and money add up in every way."""
    totals = total(result.lines.values())
    tenant_totals = total(sums for key, sums in result.lines.items() if key.kind == TENANT)
    differences = [
        f"{proof.model}: {proof.difference:+.9f} GPU hours"
        for proof in result.proofs
        if not proof.holds
    ]
    paid = sum((result.prices.of(proof.model) or 0.0) * proof.installed for proof in result.proofs)
    for name, is_, should in (
        (
            "used + idle + unmeasured",
            tenant_totals.used + tenant_totals.idle + tenant_totals.unmeasured,
            tenant_totals.hours,
        ),
        ("cost of GPUs", totals.gpu_cost, paid),
        ("kWh", totals.kwh, gpu_ledger.kwh),
        ("least line", min(0.0, *(sums.hours for sums in result.lines.values())), 0.0),
    ):
        if abs(is_ - should) > TOLERANCE * max(1.0, abs(should)):
            differences.append(f"{name}: {is_:.9f} instead of {should:.9f}")
    if differences:
        raise ConservationError(
            f"the report does not add up: {'; '.join(differences)}",
            "keep the answers by --save FILE and report this as a bug",
        )


def _proofs(charged: Lines, gpu_ledger: Ledger) -> tuple[Proof, ...]:
    installed: dict[str, float] = {}
    for (_, model), minutes in gpu_ledger.installed.items():
        installed[model] = installed.get(model, 0.0) + minutes / 60
    by_kind = grouped(charged, ["model"])

    def hours(kind: str, model: str) -> float:
        return by_kind.get((kind, model), Sums()).hours

    return tuple(
        Proof(
            model,
            hours(TENANT, model),
            hours(UNALLOCATED, model),
            hours(UNAVAILABLE, model),
            installed[model],
        )
        for model in sorted(installed)
    )


def _reasons(charged: Lines) -> dict[str, float]:
    hours = dict.fromkeys(REASONS, 0.0)
    for key, sums in charged.items():
        if key.kind != TENANT:
            hours[key.reason] += sums.hours
    return hours


def _contradictions(gpu_ledger: Ledger) -> list[str]:
    """A line for each node of which sources claim more than it has; too much of it is an error."""
    notes = []
    for node, minutes in gpu_ledger.beyond.items():
        if minutes <= 60 * TOLERANCE:
            continue
        hours, part = minutes / 60, minutes / gpu_ledger.of_node[node]
        message = f"{node}: {hours:.2f} GPU hours ({part:.1%}) more are held or offered than it has"
        if part > _CONTRADICTION:
            raise ConservationError(
                message,
                "correct `gpus` of the node in the inventory; `gpuboot verify` says how many "
                "GPUs it shows",
            )
        notes.append(f"{message}: pods of before and after a change counted together for a moment")
    return notes


def _notes(charged: Lines, prices: Prices) -> list[str]:
    notes = []
    totals = total(charged.values())
    if not prices.gpu_hour:
        notes.append("no price is given, so there are hours and no money (cost.gpu_hour, --price)")
    elif totals.unpriced:
        without = sorted({key.model for key, sums in charged.items() if sums.unpriced})
        notes.append(
            f"{totals.unpriced:.2f} GPU hours cost nothing: no price for {', '.join(without)}"
        )
    if totals.unmeasured:
        notes.append(
            f"{totals.unmeasured:.2f} GPU hours are neither used nor idle: nobody measured them"
        )
    unknown = sum(sums.hours for key, sums in charged.items() if key.reason == "unknown")
    if unknown:
        notes.append(f"{unknown:.2f} GPU hours are unknown (no samples): unavailable, and not free")
    if any(key.team == UNOWNED for key in charged):
        notes.append(f"{UNOWNED}: namespaces without label `team`")
    return notes
