"""What `gpuboot capacity` says: of each pool its outlook, and what fits into the cluster now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from gpuboot.usage.capacity import hourly
from gpuboot.usage.capacity.backtest import Backtest
from gpuboot.usage.capacity.fit import Fit, NodeFit, sizes
from gpuboot.usage.capacity.models import models
from gpuboot.usage.capacity.outlook import Exhausted, Outlook, Supply, outlook
from gpuboot.usage.capacity.pools import Pool, pools
from gpuboot.usage.series import History, SeriesError

_HEADLINES = {
    "enough": "enough",
    "order soon": "ORDER SOON",
    "order now": "ORDER NOW",
    "unknown": "unknown",
}


@dataclass(frozen=True)
class Plan:
    """What a person says. None: as the series have it."""

    target: float = 0.85
    lead_weeks: int = 12
    installed: int | None = None
    gang: int | None = None
    repair: float | None = None


@dataclass(frozen=True)
class Capacity:
    """The report. + refusal, fit_refusal: why there is no outlook at all, and no fit"""

    where: str
    outlooks: tuple[tuple[Pool, Outlook], ...] = ()
    refusal: str = ""
    fit: Fit | None = None
    fit_refusal: str = ""

    @property
    def exit_code(self) -> int:
        """1: GPUs have to be ordered; 2: of a pool, or of all, nobody can tell; 0: enough."""
        verdicts = {one.verdict for _, one in self.outlooks}
        if verdicts & {"order now", "order soon"}:
            return 1
        return 2 if "unknown" in verdicts or not verdicts else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "where": self.where,
            "exit_code": self.exit_code,
            "refusal": self.refusal,
            "pools": [_pool_json(pool, one) for pool, one in self.outlooks],
            "fit": self.fit.to_json() if self.fit else None,
            "fit_refusal": self.fit_refusal,
        }


def capacity(where: str, history: History | None, plan: Plan, refusal: str = "") -> Capacity:
    """The report without what fits. + history: None where `refusal` says why there is none"""
    if history is None:
        return Capacity(where, refusal=refusal)
    try:
        found = pools(history)
    except SeriesError as error:
        return Capacity(where, refusal=str(error))
    known = models()
    outlooks = []
    for pool, seen in found.items():
        supply = Supply(
            seen.installed if plan.installed is None else plan.installed,
            seen.unavailable if plan.repair is None else plan.repair,
            seen.gang if plan.gang is None else plan.gang,
            plan.target,
            plan.lead_weeks,
        )
        one = outlook(seen.demand, supply, known)
        notes = (*one.notes, *seen.notes, *_how_to_keep_more(history, one))
        outlooks.append((pool, replace(one, notes=notes)))
    return Capacity(where, tuple(outlooks))


def _how_to_keep_more(history: History, one: Outlook) -> Iterator[str]:
    kept = history.about.get("retention", "")
    if kept and one.history.weeks < hourly.GOOD_WEEKS:
        # Prometheus writes e.g. "15d or 1GiB716MiB": whichever it reaches first
        time, _, size = re.sub(r"(?<=[a-zA-Z])(?=\d)|(?<=\d)(?=[KMGT]i?B)", " ", kept).partition(
            " or "
        )
        limit = f"{time}, {size} at most" if size else time
        yield (
            f"Prometheus keeps {limit}; the setting monitoring.retention keeps more, e.g. 180d "
            "(docs/settings.md), or export series to a CSV file (docs/capacity.md)"
        )


def _pool_json(pool: Pool, one: Outlook) -> dict[str, Any]:
    tested = one.tested
    return {
        "model": pool.model,
        "resource": pool.resource,
        "verdict": one.verdict,
        "refusal": one.refusal,
        "history": {
            "weeks": round(one.history.weeks, 2),
            "missing": round(one.history.holes, 4),
            "start": _time(one.history.start),
            "end": _time(one.history.end),
        },
        "supply": asdict(one.supply),
        "model_used": one.model,
        "backtest": _backtest_json(tested) if tested else None,
        "peak_now": round(one.peak_now, 3),
        "need_now": one.need_now,
        "exhausted_in_weeks": asdict(one.exhausted) if one.exhausted else None,
        "weeks": [asdict(week) for week in one.weeks],
        "notes": list(one.notes),
    }


def _backtest_json(tested: Backtest) -> dict[str, Any]:
    return {
        "times": tested.origins,
        "weeks_ahead": tested.weeks,
        "mean_error": {name: round(one.mean, 3) for name, one in tested.errors.items()},
        "less_than_naive": round(tested.gain, 4),
    }


def text(report: Capacity) -> str:
    """The report for people."""
    lines = [f"Capacity of {report.where}"]
    if report.refusal:
        lines.append(f"no forecast: {report.refusal}")
    for pool, one in report.outlooks:
        lines += ["", f"{str(pool) or 'demand'}: {_HEADLINES[one.verdict]}", *_outlook_lines(one)]
    if report.fit:
        lines += ["", *_fit_lines(report.fit)]
    elif report.fit_refusal:
        lines += ["", f"what fits now is not known: {report.fit_refusal}"]
    return "\n".join(lines)


def _outlook_lines(one: Outlook) -> Iterator[str]:
    history = one.history
    if history.values:
        yield (
            f"  history    {hourly.length(len(history.values))} by the hour until "
            f"{_time(history.end)}, {history.holes:.1%} missing"
        )
    if one.refusal:
        yield f"  no forecast: {one.refusal}"
    if one.tested:
        yield f"  backtest   {backtest_words(one.tested)}"
        yield f"  demand     {_ahead_words(one)}"
        yield f"  need       {need_words(one)}"
        yield f"  exhausted  {exhausted_words(one)}"
    yield from (f"  note: {note}" for note in one.notes)


def backtest_words(tested: Backtest) -> str:
    """How good the forecast was where the truth is known."""
    times = "once" if tested.origins == 1 else f"{tested.origins} times"
    used = f" (used{f', {tested.gain:.0%} less' if tested.gain else ''})"
    errors = ", ".join(
        f"{name} {one.mean:.1f}{used * (name == tested.best)}"
        for name, one in tested.errors.items()
    )
    weeks = f"{tested.weeks} week{'s' * (tested.weeks != 1)}"
    return f"{times} {weeks} ahead, mean error in GPUs: {errors}"


def _ahead_words(one: Outlook) -> str:
    chosen = {1, 2, 4, 8, 12, 26, 52, len(one.weeks)}
    return "  ".join(
        f"+{week.week} w: {week.demand.middle:.0f} (P90 {week.demand.high:.0f})"
        for week in one.weeks
        if week.week in chosen
    )


def need_words(one: Outlook) -> str:
    """The need of now, by the parts of its formula."""
    supply = one.supply
    of = "" if supply.installed is None else f" of {supply.installed} installed"
    return (
        f"now {one.need_now}{of}: ceil(P95 of demand {one.peak_now:.0f} / {supply.target:g}) "
        f"+ {supply.unavailable:.0f} under repair (P95) + {supply.gang} for the largest job"
    )


def exhausted_words(one: Outlook) -> str:
    """When GPUs run out, with the band, against the lead time."""
    lead = f"lead time {one.supply.lead_weeks} weeks"
    ends = len(one.weeks)
    if one.exhausted is None:
        return f"not known: nobody says how many GPUs are installed (--installed); {lead}"
    if one.exhausted.middle == 0:
        return f"now: the need is more than what is installed; {lead}"
    band = _band_words(one.exhausted, ends)
    return f"{_weeks(one.exhausted.middle, ends)}{band}; {lead}"


def _band_words(found: Exhausted, ends: int) -> str:
    if found.early is None:
        return ", not even if demand goes as P90"
    return f" (P90: {_weeks(found.early, ends)}, P10: {_weeks(found.late, ends)})"


def _weeks(number: int | None, ends: int) -> str:
    if number is None:
        return f"not within {ends} weeks"
    return f"in {number} week{'s' * (number != 1)}"


def _fit_lines(fit: Fit) -> Iterator[str]:
    yield (
        f"What fits now, with {fit.shape.cpu:g} cores and {fit.shape.memory:g} GiB of memory "
        "beside each GPU"
    )
    if not fit.nodes:
        yield "  no node has a GPU"
    for (model, resource), nodes in fit.by_pool().items():
        yield from _pool_lines(f"{model} {resource}".strip(), nodes)
    for one in fit.waiting:
        yield f"  waits: {one.pod} for {one.count} {one.resource}: {one.why or 'not yet looked at'}"


def _pool_lines(name: str, nodes: list[NodeFit]) -> Iterator[str]:
    stranded = sum(sum(one.stranded.values()) for one in nodes)
    yield (
        f"  {name}: {sum(one.capacity for one in nodes)} installed, "
        f"{sum(one.held for one in nodes)} held, {sum(one.usable for one in nodes)} usable, "
        f"{stranded} stranded"
    )
    most = max((one.usable for one in nodes), default=0)
    if most:
        where = ", ".join(one.node for one in nodes if one.usable == most)
        each = ", ".join(f"{count} of {size}" for size, count in sizes(nodes).items())
        yield f"    largest pod: {most} ({where}); pods that fit: {each}"
    else:
        yield "    largest pod: none fits"
    for one in nodes:
        for reason, count in one.stranded.items():
            yield f"    stranded: {count} on {one.node}: {reason}"


def _time(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")
