"""A report as a table for a terminal, as CSV, and as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

from gpuboot.plan.terminal_tables import table_lines
from gpuboot.usage.cost.cost_lines import KEYS, UNOWNED, Sums, grouped, total
from gpuboot.usage.cost.cost_question import RESOLUTION_S
from gpuboot.usage.cost.cost_report import Proof, Report
from gpuboot.usage.cost.ledger import REASONS, TENANT, UNALLOCATED, UNAVAILABLE

_OWNER_KEYS = {"team", "namespace", "pod"}
# name in CSV and JSON, heading for people, field of `Sums`, digits
_COLUMNS = (
    ("gpu_hours", "GPU h", "hours", 2),
    ("used_gpu_hours", "used", "used", 2),
    ("sm_active_gpu_hours", "SM", "sm", 2),
    ("idle_gpu_hours", "idle", "idle", 2),
    ("unmeasured_gpu_hours", "unmeasured", "unmeasured", 2),
    ("efficiency", "eff.", "efficiency", 2),
    ("energy_kwh", "kWh", "kwh", 2),
    ("gpu_cost", "GPU cost", "gpu_cost", 2),
    ("energy_cost", "energy cost", "energy_cost", 2),
    ("total_cost", "total", "total_cost", 2),
)
_MONEY = {"gpu_cost", "energy_cost", "total_cost"}
_OF_TENANTS = {"used", "sm", "idle", "unmeasured", "efficiency"}


def text(report: Report, by: Sequence[str]) -> str:
    """The report for a terminal."""
    rows = list(_cells(report, by))
    table = table_lines(rows, numbers=range(len(_headings(by)), len(rows[0])))
    return "\n".join([*_head(report), "", *table, "", *proof(report), *_notes(report, by)])


def comma_separated(report: Report, by: Sequence[str]) -> str:
    """The rows as CSV: all digits, and no sums; money only where there are prices."""
    out = StringIO()
    writer = csv.DictWriter(out, _fields(report, by), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(report, by))
    return out.getvalue().rstrip("\n")


def as_json(report: Report, by: Sequence[str]) -> str:
    """Everything: rows, sums, proofs, and how it was counted."""
    window = report.period.window
    document = {
        "cluster": report.cluster,
        "start": report.period.format_moment(window.start),
        "end": report.period.format_moment(window.end),
        "resolution_s": RESOLUTION_S,
        "step_s": window.step,
        "currency": report.prices.currency,
        "prices": dict(report.prices.gpu_hour),
        "energy_price_kwh": report.prices.kwh,
        "pue": report.prices.pue,
        "rows": _rows(report, by),
        "total": _values(report, total(report.lines.values())),
        "reasons": dict(report.reasons),
        "conservation": [
            _proof_json(model_proof) for model_proof in (*report.proofs, report.total_proof)
        ],
        "notes": list(notes(report, by)),
    }
    return json.dumps(document, indent=1)


def proof(report: Report) -> Iterator[str]:
    """The lines that show that all hours are there."""
    total_proof = report.total_proof
    for model_proof in (*report.proofs, *([total_proof] if len(report.proofs) > 1 else [])):
        yield (
            f"{model_proof.model}: tenants {model_proof.tenants:.4f} + "
            f"unallocated {model_proof.unallocated:.4f} + "
            f"unavailable {model_proof.unavailable:.4f} = "
            f"installed {model_proof.installed:.4f} GPU hours "
            f"(difference {abs(model_proof.difference):.1e})"
        )
    for kind in (UNALLOCATED, UNAVAILABLE):
        parts = [
            f"{reason} {report.reasons[reason]:.2f}"
            for reason, of_kind in REASONS.items()
            if of_kind == kind and report.reasons[reason] > 0
        ]
        if parts:
            yield f"{kind}: {', '.join(parts)}"


def _head(report: Report) -> Iterator[str]:
    period, prices = report.period, report.prices
    of_cluster = f" of {report.cluster}" if report.cluster else ""
    yield (
        f"GPU hours{of_cluster}, {period.format_moment(period.window.start)} to "
        f"{period.format_moment(period.window.end)}, counted by the minute"
    )
    if prices.gpu_hour:
        price_list = ", ".join(f"{model} {price:g}" for model, price in prices.gpu_hour.items())
        yield f"price of a GPU hour in {prices.currency}: {price_list}"
    if prices.kwh is not None:
        yield f"price of a kWh: {prices.kwh:g} {prices.currency}, with PUE {prices.pue:g}"


def notes(report: Report, by: Sequence[str]) -> Iterator[str]:
    """What a reader should know about the numbers; of a team only where a row has one."""
    return (note for note in report.notes if "team" in by or not note.startswith(UNOWNED))


def _notes(report: Report, by: Sequence[str]) -> Iterator[str]:
    return (f"note: {note}" for note in notes(report, by))


def _headings(by: Sequence[str]) -> list[str]:
    keys = [key for key in KEYS if key in by]
    return [*keys, *([] if _OWNER_KEYS & set(by) else ["kind"])]


def _columns(report: Report) -> list[tuple[str, str, str, int]]:
    """The columns that hold anything in this report."""
    hidden = {name for name in _MONEY if not report.prices.is_known}
    if not report.sm_known:
        hidden.add("sm_active_gpu_hours")
    if report.prices.kwh is None:
        hidden.add("energy_cost")
    if not any(sums.unmeasured for sums in report.lines.values()):
        hidden.add("unmeasured_gpu_hours")
    return [column for column in _COLUMNS if column[0] not in hidden]


def _names(by: Sequence[str], name: tuple[str, ...]) -> list[str]:
    """What stands in a row's first cells; GPUs that nobody held have names that no tenant can."""
    kind, *values = name
    keys = [key for key in KEYS if key in by]
    cells = []
    is_named = False
    for key, value in zip(keys, values, strict=True):
        if kind != TENANT and key in _OWNER_KEYS:
            cells.append("" if is_named else f"__{kind}__")
            is_named = True
        else:
            cells.append(value)
    return cells if _OWNER_KEYS & set(by) else [*cells, "held" if kind == TENANT else kind]


def _cells(report: Report, by: Sequence[str]) -> Iterator[list[str]]:
    columns = _columns(report)
    yield [*_headings(by), *(heading for _, heading, _, _ in columns)]
    for name, sums in grouped(report.lines, by).items():
        tenant = name[0] == TENANT
        yield [*_names(by, name), *(_cell(sums, column, tenant) for column in columns)]
    totals = total(report.lines.values())
    padding = [""] * (len(_headings(by)) - 1)
    yield ["total", *padding, *(_cell(totals, column, True) for column in columns)]


def _cell(sums: Sums, column: tuple[str, str, str, int], tenant: bool) -> str:
    name, _, field, digits = column
    if not tenant and field in _OF_TENANTS:
        return "-"
    if name == "gpu_cost" and sums.unpriced and sums.unpriced >= sums.hours:
        return "no price"
    value = getattr(sums, field)
    if value is None:
        return "-"
    if name == "efficiency":
        return f"{value:.0%}"
    return f"{round(value, digits) or 0.0:.{digits}f}"


def _fields(report: Report, by: Sequence[str]) -> list[str]:
    values = list(_values(report, Sums()))
    return [*(key for key in KEYS if key in by), "kind", *values]


def _rows(report: Report, by: Sequence[str]) -> list[dict[str, Any]]:
    keys = [key for key in KEYS if key in by]
    rows = []
    for name, sums in grouped(report.lines, by).items():
        kind, *_ = name
        cells = dict(zip(keys, _names(by, name), strict=False))
        rows.append({**cells, "kind": kind, **_values(report, sums)})
    return rows


def _values(report: Report, sums: Sums) -> dict[str, Any]:
    """All numbers; money is left out where nothing has a price."""
    values: dict[str, Any] = {
        name: getattr(sums, field)
        for name, _, field, _ in _COLUMNS
        if (report.prices.is_known or name not in _MONEY)
        and (report.sm_known or name != "sm_active_gpu_hours")
    }
    if report.prices.is_known:
        values |= {"unpriced_gpu_hours": sums.unpriced, "currency": report.prices.currency}
    return values


def _proof_json(model_proof: Proof) -> dict[str, Any]:
    return {
        "model": model_proof.model,
        "tenant_gpu_hours": model_proof.tenants,
        "unallocated_gpu_hours": model_proof.unallocated,
        "unavailable_gpu_hours": model_proof.unavailable,
        "installed_gpu_hours": model_proof.installed,
        "difference": model_proof.difference,
    }
