"""docs/metrics.md from the field table and `templates/docs/metrics.md.j2`."""

from __future__ import annotations

from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.telemetry import (
    FIELDS,
    Family,
    Field,
    Limit,
    Shape,
    disk_bytes,
    memory_bytes,
    series,
)
from gpuboot.templates import render

_HEAD = "| Metric | Id | Type | Unit | Collected | MIG | Where | Meaning |\n" + "|---" * 8 + "|"
_COLLECTED = {"upstream": "default", "gpuboot": "gpuboot", "opt-in": "opt-in"}
_LEVELS = {"gpu": "whole GPU", "slice": "slice", "once": "GPU only"}
_NODES, _GPUS = 100, 8
_NONE = (Limit.VGPU, Limit.FAN)
_HOPPER = (*_NONE, Limit.BEFORE_AMPERE, Limit.NVLINK_5)
_ADA = (*_HOPPER, Limit.NVLINK, Limit.FABRIC, Limit.MEMORY_SENSOR)
_MIG = (*_HOPPER, Limit.NO_MIG)
# What stands in the table of sizes: words, settings, MIG slices, limits of these GPUs
_EXAMPLES: tuple[tuple[str, dict[str, object], int, tuple[Limit, ...]], ...] = (
    ("H100 or H200, SXM", {}, 0, _HOPPER),
    ("L40S, PCIe", {}, 0, _ADA),
    ("H100, each GPU shared by 4 pods", {"gpu_operator": {"time_slices": 4}}, 0, _HOPPER),
    ("H100, each in 7 MIG slices", {}, 7, _MIG),
)


def metrics_markdown() -> str:
    """The content of docs/metrics.md."""
    defaults = Settings()
    return render(
        "docs/metrics.md.j2",
        tables={family.value: _table(family) for family in Family},
        shape=Shape(_NODES, _GPUS),
        interval=defaults.exporter.scrape_interval,
        retention=defaults.monitoring.retention,
        sizes="\n".join(_size(*example) for example in _EXAMPLES),
    )


def _table(family: Family) -> str:
    return "\n".join([_HEAD, *(_row(field) for field in FIELDS if field.family is family)])


def _row(field: Field) -> str:
    conditions = [limit.value for limit in field.limits]
    if field.since:
        conditions.append(f"from {' '.join(field.since)} on")
    cells = (
        f"`{field.name}`",
        "exporter" if field.id is None else str(field.id),
        field.kind,
        field.unit,
        _COLLECTED[field.tier],
        _LEVELS[field.level] if field.kind != "label" else "",
        "; ".join(conditions),
        field.help,
    )
    return "| " + " | ".join(cells) + " |"


def _size(
    words: str, data: dict[str, object], slices: int, missing_limits: tuple[Limit, ...]
) -> str:
    settings = Settings.model_validate(data)
    count = series(settings, Shape(_NODES, _GPUS, slices, missing=missing_limits))
    interval = seconds(settings.exporter.scrape_interval)
    memory = memory_bytes(count.total, interval) / 1e9
    disk = disk_bytes(count.total, interval, seconds(settings.monitoring.retention)) / 1e9
    return (
        f"| {words} | {count.gpu} | {count.node} | {count.total:,} | {memory:.1f} GB "
        f"| {disk:.0f} GB |"
    )
