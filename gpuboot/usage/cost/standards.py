"""A report in the words of others: OpenCost's allocations, and FOCUS.

OpenCost: fields of the JSON that its allocation API answers, opencost/opencost
core/pkg/opencost/allocation_json.go (`AllocationJSON`); `__idle__` is its name for what nobody held
(allocation.go, `IdleSuffix`). Fields on CPU, memory, volumes and network are left out: nothing is
said of them here, and 0 would say something.

FOCUS: columns of the FinOps Open Cost and Usage Specification 1.2
(FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec, specification/columns). More columns begin with `x_`,
as it says.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.cost.ledger import TENANT, UNALLOCATED
from gpuboot.usage.cost.lines import KEYS, LineKey, Sums, grouped
from gpuboot.usage.cost.report import Report

_IDLE = {UNALLOCATED: "__idle__"}
FOCUS = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency",
    "ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit", "ContractedCost",
    "ContractedUnitPrice", "EffectiveCost", "InvoiceIssuerName", "ListCost", "ListUnitPrice",
    "PricingCategory", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "SkuId",
    "SubAccountId", "SubAccountName", "Tags", "x_Kind", "x_UsedGpuHours",
)  # fmt: skip


def opencost(report: Report, by: Sequence[str]) -> str:
    """As `GET /allocation` of OpenCost answers: one set, or one for each day where `by` has it."""
    sets: dict[str, dict[str, Any]] = {}
    days = "day" in by
    keys = [key for key in KEYS if key in by and key != "day"]
    for name, sums in grouped(report.lines, by).items():
        kind, *values = name
        day = values.pop(0) if days else ""
        labels = dict(zip(keys, values, strict=True))
        title = "/".join(values) if kind == TENANT else _IDLE.get(kind, f"__{kind}__")
        if kind != TENANT and labels.get("model"):
            title += f"/{labels['model']}"
        start, end = report.period.ends_of(day) if day else _ends(report)
        sets.setdefault(day, {})[title] = _allocation(report, title, labels, (start, end), sums)
    data = [sets[day] for day in sorted(sets)]
    return json.dumps({"code": 200, "status": "success", "data": data}, indent=1)


def _allocation(
    report: Report, name: str, labels: dict[str, str], ends: tuple[int, int], sums: Sums
) -> dict[str, Any]:
    start, end = (_utc(moment) for moment in ends)
    hours = (ends[1] - ends[0]) / 3600
    properties: dict[str, Any] = {"cluster": report.cluster}
    properties |= {key: labels[key] for key in ("namespace", "pod") if labels.get(key)}
    if labels.get("team"):
        properties["labels"] = {"team": labels["team"]}
    allocation: dict[str, Any] = {
        "name": name,
        "properties": properties,
        "window": {"start": start, "end": end},
        "start": start,
        "end": end,
        "minutes": hours * 60,
        "gpuCount": sums.hours / hours,
        "gpuHours": sums.hours,
        "gpuEfficiency": sums.used / sums.hours if sums.hours else 0.0,
        "gpuAllocation": {
            "gpuModel": labels.get("model", ""),
            "gpuRequestAverage": sums.hours / hours,
            "gpuUsageAverage": sums.used / hours,
        },
    }
    if report.prices.is_known:
        allocation |= {
            "gpuCost": sums.gpu_cost,
            "gpuCostIdle": sums.gpu_cost * sums.idle / sums.hours if sums.hours else 0.0,
            "sharedCost": sums.shared_cost,
            "externalCost": sums.energy_cost,
            "totalCost": sums.total_cost,
        }
    return allocation


def focus(report: Report) -> str:
    """FOCUS rows as CSV: by day, namespace, pod and model, one for each kind of charge.

    Raises `CostError` without prices: FOCUS is about money.
    """
    if not report.prices.is_known:
        raise CostError("FOCUS is about money, and there is no price", "--price MODEL=PRICE, or "
                        "cost.gpu_hour in the settings")  # fmt: skip
    out = StringIO()
    writer = csv.DictWriter(out, FOCUS, lineterminator="\n")
    writer.writeheader()
    for key, sums in sorted(report.lines.items()):
        writer.writerows(_charges(report, key, sums))
    return out.getvalue().rstrip("\n")


def _charges(report: Report, key: LineKey, sums: Sums) -> Iterator[dict[str, Any]]:
    """GPU hours, energy, and what is borne of GPUs that nobody held."""
    prices, category = report.prices, key.kind if key.kind != TENANT else "held"
    row = _row(report, key) | {"x_UsedGpuHours": sums.used if key.kind == TENANT else None}
    price = prices.of(key.model)
    if sums.hours and price is not None:
        yield row | _charge(
            f"{key.model}, {category}", sums.hours, "GPU-Hours", price, sums.gpu_cost
        )
    if sums.kwh and prices.kwh is not None:
        paid = prices.kwh * prices.pue
        yield row | _charge("GPU energy", sums.kwh, "kWh", paid, sums.energy_cost)
    if sums.shared_cost:
        text = "share of GPUs that nobody held"
        yield row | _charge(text, sums.shared_hours, "GPU-Hours", None, sums.shared_cost)


def _charge(
    text: str, quantity: float, unit: str, price: float | None, cost: float
) -> dict[str, Any]:
    costs = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")
    return {
        **dict.fromkeys(costs, cost),
        "ChargeDescription": text,
        "ConsumedQuantity": quantity,
        "ConsumedUnit": unit,
        "PricingQuantity": quantity,
        "PricingUnit": unit,
        "ListUnitPrice": price,
        "ContractedUnitPrice": price,
    }


def _row(report: Report, key: LineKey) -> dict[str, Any]:
    start, end = report.period.ends_of(key.day)
    first, last = _ends(report)
    account = report.cluster or "gpuboot"
    tags = {name: getattr(key, name) for name in ("team", "namespace", "pod") if getattr(key, name)}
    return {
        **dict.fromkeys(("BillingAccountId", "BillingAccountName"), account),
        **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), account),
        "BillingCurrency": report.prices.currency,
        "BillingPeriodStart": _utc(first),
        "BillingPeriodEnd": _utc(last),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": _utc(start),
        "ChargePeriodEnd": _utc(end),
        "PricingCategory": "Standard",
        "ResourceId": f"{key.namespace}/{key.pod}" if key.pod else "",
        "ResourceName": key.pod,
        "ResourceType": "Pod" if key.pod else "",
        "ServiceCategory": "Compute",
        "ServiceName": "GPU",
        "SkuId": key.model,
        "SubAccountId": key.namespace,
        "SubAccountName": key.namespace,
        "Tags": json.dumps(tags),
        "x_Kind": key.kind if key.kind == TENANT else f"{key.kind}: {key.reason}",
    }


def _ends(report: Report) -> tuple[int, int]:
    return report.period.window.start, report.period.window.end


def _utc(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
