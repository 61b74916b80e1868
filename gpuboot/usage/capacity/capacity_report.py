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

    source: str
    outlooks: tuple[tuple[Pool, Outlook], ...] = ()
    refusal: str = ""
    fit: Fit | None = None
    fit_refusal: str = ""

    @property
    def exit_code(self) -> int:
        """1: GPUs have to be ordered; 2: of a pool, or of all, nobody can tell; 0: enough."""
        verdicts = {pool_outlook.verdict for _, pool_outlook in self.outlooks}
        if verdicts & {"order now", "order soon"}:
            return 1
        return 2 if "unknown" in verdicts or not verdicts else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "where": self.source,
            "exit_code": self.exit_code,
            "refusal": self.refusal,
            "pools": [_pool_json(pool, pool_outlook) for pool, pool_outlook in self.outlooks],
            "fit": self.fit.to_json() if self.fit else None,
            "fit_refusal": self.fit_refusal,
        }


def capacity(location: str, history: History | None, plan: Plan, refusal: str = "") -> Capacity:
    """The report without what fits. + history: None where `refusal` says why there is none"""
    if history is None:
        return Capacity(location, refusal=refusal)
    try:
        data_by_pool = pools(history)
    except SeriesError as error:
        return Capacity(location, refusal=str(error))
    available_models = models()
    outlooks = []
    for pool, data in data_by_pool.items():
        supply = Supply(
            data.installed if plan.installed is None else plan.installed,
            data.unavailable if plan.repair is None else plan.repair,
            data.gang if plan.gang is None else plan.gang,
            plan.target,
            plan.lead_weeks,
        )
        pool_outlook = outlook(data.demand, supply, available_models)
        notes = (*pool_outlook.notes, *data.notes, *_how_to_keep_more(history, pool_outlook))
        outlooks.append((pool, replace(pool_outlook, notes=notes)))
    return Capacity(location, tuple(outlooks))


def _how_to_keep_more(history: History, pool_outlook: Outlook) -> Iterator[str]:
    retention = history.metadata.get("retention", "")
    if retention and pool_outlook.history.weeks < hourly.GOOD_WEEKS:
        # Prometheus writes e.g. "15d or 1GiB716MiB": whichever it reaches first
        time, _, size = re.sub(
            r"(?<=[a-zA-Z])(?=\d)|(?<=\d)(?=[KMGT]i?B)", " ", retention
        ).partition(" or ")
        limit = f"{time}, {size} at most" if size else time
        yield (
            f"Prometheus keeps {limit}; the setting monitoring.retention keeps more, e.g. 180d "
            "(docs/settings.md)"
        )


def _pool_json(pool: Pool, pool_outlook: Outlook) -> dict[str, Any]:
    tested = pool_outlook.tested
    return {
        "model": pool.model,
        "resource": pool.resource,
        "verdict": pool_outlook.verdict,
        "refusal": pool_outlook.refusal,
        "history": {
            "weeks": round(pool_outlook.history.weeks, 2),
            "missing": round(pool_outlook.history.holes, 4),
            "start": _time(pool_outlook.history.start),
            "end": _time(pool_outlook.history.end),
        },
        "supply": asdict(pool_outlook.supply),
        "model_used": pool_outlook.model,
        "backtest": _backtest_json(tested) if tested else None,
        "peak_now": round(pool_outlook.peak_now, 3),
        "need_now": pool_outlook.need_now,
        "exhausted_in_weeks": asdict(pool_outlook.exhausted) if pool_outlook.exhausted else None,
        "weeks": [asdict(week) for week in pool_outlook.weeks],
        "notes": list(pool_outlook.notes),
    }


def _backtest_json(tested: Backtest) -> dict[str, Any]:
    return {
        "times": tested.origins,
        "weeks_ahead": tested.weeks,
        "mean_error": {
            name: round(model_errors.mean, 3) for name, model_errors in tested.errors.items()
        },
        "less_than_naive": round(tested.gain, 4),
    }


def text(report: Capacity) -> str:
    """The report for people."""
    lines = [f"Capacity of {report.source}"]
    if report.refusal:
        lines.append(f"no forecast: {report.refusal}")
    for pool, pool_outlook in report.outlooks:
        lines += [
            "",
            f"{str(pool) or 'demand'}: {_HEADLINES[pool_outlook.verdict]}",
            *_outlook_lines(pool_outlook),
        ]
    if report.fit:
        lines += ["", *_fit_lines(report.fit)]
    elif report.fit_refusal:
        lines += ["", f"what fits now is not known: {report.fit_refusal}"]
    return "\n".join(lines)


def _outlook_lines(pool_outlook: Outlook) -> Iterator[str]:
    history = pool_outlook.history
    if history.values:
        yield (
            f"  history    {hourly.length(len(history.values))} by the hour until "
            f"{_time(history.end)}, {history.holes:.1%} missing"
        )
    if pool_outlook.refusal:
        yield f"  no forecast: {pool_outlook.refusal}"
    if pool_outlook.tested:
        yield f"  backtest   {backtest_words(pool_outlook.tested)}"
        yield f"  demand     {_ahead_words(pool_outlook)}"
        yield f"  need       {need_words(pool_outlook)}"
        yield f"  exhausted  {exhausted_words(pool_outlook)}"
    yield from (f"  note: {note}" for note in pool_outlook.notes)


def backtest_words(tested: Backtest) -> str:
    """How good the forecast was where the truth is known."""
    times = "once" if tested.origins == 1 else f"{tested.origins} times"
    used = f" (used{f', {tested.gain:.0%} less' if tested.gain else ''})"
    errors = ", ".join(
        f"{name} {model_errors.mean:.1f}{used * (name == tested.best)}"
        for name, model_errors in tested.errors.items()
    )
    weeks = f"{tested.weeks} week{'s' * (tested.weeks != 1)}"
    return f"{times} {weeks} ahead, mean error in GPUs: {errors}"


def _ahead_words(pool_outlook: Outlook) -> str:
    shown_weeks = {1, 2, 4, 8, 12, 26, 52, len(pool_outlook.weeks)}
    return "  ".join(
        f"+{week.week} w: {week.demand.middle:.0f} (P90 {week.demand.high:.0f})"
        for week in pool_outlook.weeks
        if week.week in shown_weeks
    )


def need_words(pool_outlook: Outlook) -> str:
    """The need of now, by the parts of its formula."""
    supply = pool_outlook.supply
    of = "" if supply.installed is None else f" of {supply.installed} installed"
    return (
        f"now {pool_outlook.need_now}{of}: ceil(P95 of demand {pool_outlook.peak_now:.0f} / "
        f"{supply.target:g}) + {supply.unavailable:.0f} under repair (P95) + {supply.gang} for the "
        "largest job"
    )


def exhausted_words(pool_outlook: Outlook) -> str:
    """When GPUs run out, with the band, against the lead time."""
    lead = f"lead time {pool_outlook.supply.lead_weeks} weeks"
    ends = len(pool_outlook.weeks)
    if pool_outlook.exhausted is None:
        return f"not known: nobody says how many GPUs are installed (--installed); {lead}"
    if pool_outlook.exhausted.middle == 0:
        return f"now: the need is more than what is installed; {lead}"
    band = _band_words(pool_outlook.exhausted, ends)
    return f"{_weeks(pool_outlook.exhausted.middle, ends)}{band}; {lead}"


def _band_words(exhausted: Exhausted, ends: int) -> str:
    if exhausted.early is None:
        return ", not even if demand goes as P90"
    return f" (P90: {_weeks(exhausted.early, ends)}, P10: {_weeks(exhausted.late, ends)})"


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
    for pod in fit.waiting:
        yield f"  waits: {pod.pod} for {pod.count} {pod.resource}: {pod.why or 'not yet looked at'}"


def _pool_lines(name: str, nodes: list[NodeFit]) -> Iterator[str]:
    stranded = sum(sum(node.stranded.values()) for node in nodes)
    yield (
        f"  {name}: {sum(node.capacity for node in nodes)} installed, "
        f"{sum(node.held for node in nodes)} held, {sum(node.usable for node in nodes)} usable, "
        f"{stranded} stranded"
    )
    maximum = max((node.usable for node in nodes), default=0)
    if maximum:
        best_nodes = ", ".join(node.node for node in nodes if node.usable == maximum)
        size_counts = ", ".join(f"{count} of {size}" for size, count in sizes(nodes).items())
        yield f"    largest pod: {maximum} ({best_nodes}); pods that fit: {size_counts}"
    else:
        yield "    largest pod: none fits"
    for node in nodes:
        for reason, count in node.stranded.items():
            yield f"    stranded: {count} on {node.node}: {reason}"


def _time(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")
