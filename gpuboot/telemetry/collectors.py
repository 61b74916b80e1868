"""dcgm-exporter's collectors CSV: which fields it collects, checked as the exporter checks it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuboot.telemetry.fields import BY_NAME, FIELDS, Field, UnknownField

if TYPE_CHECKING:
    from gpuboot.settings import Exporter, Settings


def choose(extra: Iterable[str]) -> list[Field]:
    """The default fields and the named ones, in the table's order and each once.

    + extra: names of opt-in fields (`settings.exporter.counters`)

    Raises `UnknownField` that names every unknown one and the nearest known name.
    """
    wanted = set(extra)
    unknown = sorted(wanted - BY_NAME.keys())
    if unknown:
        raise UnknownField("; ".join(map(_explain, unknown)))
    return [field for field in FIELDS if field.default or field.name in wanted]


def _explain(name: str) -> str:
    near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "see docs/metrics.md"
    return f"unknown DCGM field {name}: {hint}"


def collectors_csv(extra: Sequence[str] = ()) -> str:
    """The exporter's collectors file: the default fields and `extra`.

    + extra: names of opt-in fields, as for `choose`, which tells what is raised
    """
    lines = ["# DCGM field, Prometheus type, help (made by gpuboot; see docs/metrics.md)"]
    for field in choose(extra):
        unit = f" ({field.unit})" if field.unit else ""
        lines.append(f"{field.name}, {field.kind}, {field.help}{unit}")
    return "\n".join(lines) + "\n"


def parse_collectors(text: str) -> dict[str, str]:
    """Read a collectors file as dcgm-exporter does: name -> Prometheus type.

    + text: the file's contents

    Raises ValueError, with the line's number, for what makes the exporter exit at its start:
    a line without exactly three columns, a repeated or unnamed field, an unknown type
    (counter_config.go of dcgm-exporter).
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split(",")]
        if len(columns) != 3:
            raise ValueError(f"line {number}: {len(columns)} columns instead of 3: {line!r}")
        name, kind, _ = columns
        if '"' in line:
            raise ValueError(f"line {number}: a quote character: {line!r}")
        if not name.startswith("DCGM_") or name in found:
            raise ValueError(f"line {number}: {name!r} is no field name, or is there twice")
        if kind not in {"gauge", "counter", "untyped", "label"}:
            raise ValueError(f"line {number}: unknown type {kind!r}")
        found[name] = kind
    return found


def collectors(exporter: Exporter) -> str:
    """The exporter's collectors CSV: the site's own file where it names one, else ours.

    Raises OSError when the named file cannot be read, `UnknownField` for a bad name.
    """
    if exporter.collectors_file:
        return Path(exporter.collectors_file).expanduser().read_text()
    return collectors_csv(exporter.counters)


def collected(settings: Settings) -> set[str]:
    """Names of the metrics that the exporter has when it runs by these settings.

    + settings: the site's settings

    Fields of type `label` are left out, since they make labels and no series. What is raised: see
    `collectors` and `parse_collectors`.
    """
    parsed = parse_collectors(collectors(settings.exporter))
    return {name for name, kind in parsed.items() if kind != "label"}
