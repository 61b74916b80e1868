"""dcgm-exporter's collectors CSV: which fields it collects, checked as the exporter checks it."""

from __future__ import annotations

import difflib
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from gpuboot.config.problems import Problem
from gpuboot.telemetry.fields import BY_NAME, FIELDS, Field, UnknownField
from gpuboot.telemetry.requested_fields import RequestedFields

if TYPE_CHECKING:
    from gpuboot.config.settings import Exporter, Settings

# Annotation of the exporter's pods: `digest` of the collectors file that they started with.
COLLECTORS_ANNOTATION = "gpuboot.io/collectors"
# What dcgm-exporter 4.8.3 and later can print; up to 4.8.2 histogram and summary instead of
# untyped (internal/pkg/counters/variables.go).
KINDS = {"counter", "gauge", "label", "untyped"}
# By which the exporter is told another file (pkg/cmd/app.go, CLIFieldsFile and ConfigMapData).
_FILE_OPTIONS = {"-f", "--collectors", "-m", "--configmap-data"}
# Fields that exporter 4.8.4 refuses, and what it names in their place (counter_config.go).
_RETIRED = {200: "DCGM_FI_PROF_PCIE_TX_BYTES", 201: "DCGM_FI_PROF_PCIE_RX_BYTES"}
# One cell of a CSV line as Go's encoding/csv reads it: quotes count at the cell's start only.
_CELL = re.compile(r'"((?:[^"]|"")*)"(?=,|$)|([^",]*)(?=,|$)')


class CollectorsError(ValueError):
    """A collectors file that the exporter would not start with, or not answer scrapes with."""


def choose(extra: Iterable[str]) -> list[Field]:
    """The default fields and the named ones, in the table's order and each once.

    + extra: names of opt-in fields (`settings.exporter.counters`)

    Raises `UnknownField` that names every unknown one and the nearest known name.
    """
    requested = set(extra)
    unknown = sorted(requested - BY_NAME.keys())
    if unknown:
        raise UnknownField("; ".join(_explain(name, BY_NAME) for name in unknown))
    return [field for field in FIELDS if field.default or field.name in requested]


def _explain(name: str, known_names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known_names, n=1, cutoff=0.5)
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

    Raises `CollectorsError`, with the line's number, for what makes exporter 4.8.4 exit at its
    start (ExtractCounters in its counter_config.go, Go's encoding/csv): a line without exactly
    three columns, an unknown field or type, a misplaced quote, a field it has retired. Also for a
    field that is there twice, under whichever names: its series would be there twice, and such a
    scrape fails as a whole.
    """
    kinds: dict[str, str] = {}
    numbers: dict[int, str] = {}
    for line, columns in _rows(text):
        if len(columns) != 3:
            raise CollectorsError(f"line {line}: {len(columns)} columns instead of 3: {columns}")
        name, kind, _ = columns
        if kind not in KINDS:
            raise CollectorsError(f"line {line}: unknown type {kind!r}")
        number = _number(name, line)
        if name in kinds or (number is not None and number in numbers):
            duplicates = name if name in kinds else f"{name} and {numbers[number or 0]}"
            raise CollectorsError(f"line {line}: there twice: {duplicates}")
        kinds[name] = kind
        if number is not None:
            numbers[number] = name
    if not kinds:
        raise CollectorsError("no field in it")
    return kinds


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line and not line.startswith("#"):
            yield number, _columns(line, number)


def _columns(line: str, number: int) -> list[str]:
    """The cells of a line, without the blanks around them."""
    cells, place = [], 0
    while True:
        cell = _CELL.match(line, place)
        if cell is None:
            raise CollectorsError(f"line {number}: a misplaced quote character: {line!r}")
        quoted, plain = cell.groups()
        cells.append((plain if quoted is None else quoted.replace('""', '"')).strip(" "))
        if cell.end() == len(line):
            return cells
        place = cell.end() + 1


def _number(name: str, line: int) -> int | None:
    """DCGM's number of a field; None for the exporter's own metrics."""
    field = BY_NAME.get(name)
    if field is not None and field.id is None:
        return None
    numbers = field_numbers()
    if name not in numbers:
        raise CollectorsError(f"line {line}: {_explain(name, [*numbers, *BY_NAME])}")
    if numbers[name] in _RETIRED:
        raise CollectorsError(
            f"line {line}: the exporter has retired {name}: use {_RETIRED[numbers[name]]}"
        )
    return numbers[name]


@functools.cache
def field_numbers() -> dict[str, int]:
    """Every name by which dcgm-exporter knows a DCGM field, old and new -> the field's number."""
    text = resources.files("gpuboot.telemetry").joinpath("names.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {name: int(number) for number, names in lines for name in names.split()}


def collectors(exporter: Exporter) -> str:
    """The exporter's collectors CSV: the site's own file where it names one, else ours.

    Raises OSError when the named file cannot be read, `UnknownField` for a bad name.
    """
    if exporter.collectors_file:
        return Path(exporter.collectors_file).expanduser().read_text(encoding="utf-8")
    return collectors_csv(exporter.counters)


def collectors_annotation(exporter: Exporter) -> dict[str, str]:
    """The annotation that restarts the exporter's pods when their list of fields changes.

    Both charts mount the list by subPath, which the kubelet never refreshes, and neither puts a
    checksum of it into the pod (gpu-operator v26.7.0 object_controls.go TransformDCGMExporter;
    dcgm-exporter's chart 4.8.4 templates/daemonset.yaml). What is raised: see `collectors`.
    """
    return {COLLECTORS_ANNOTATION: digest(collectors(exporter))}


def digest(text: str) -> str:
    """Digest of a collectors file, as `COLLECTORS_ANNOTATION` carries it."""
    return hashlib.sha256(text.encode()).hexdigest()


def collected(settings: Settings) -> set[str]:
    """Names of the metrics that the exporter has when it runs by these settings.

    + settings: the site's settings

    Fields of type `label` are left out, since they make labels and no series. What is raised: see
    `collectors` and `parse_collectors`.
    """
    parsed = parse_collectors(collectors(settings.exporter))
    return {name for name, kind in parsed.items() if kind != "label"}


def requested_fields(settings: Settings) -> RequestedFields | None:
    """What verification is to find collected; None where the site runs a list of its own past us.

    That is: another collectors file by `exporter.arguments`, or another ConfigMap by
    `gpu_operator.values`.
    """
    exporter = settings.exporter
    chart = settings.gpu_operator.values.get("dcgmExporter", {})
    elsewhere = exporter.kind == "operator" and "config" in chart
    if elsewhere or any(word.split("=")[0] in _FILE_OPTIONS for word in exporter.arguments):
        return None
    try:
        return RequestedFields(frozenset(collected(settings)), digest(collectors(exporter)))
    except (OSError, ValueError) as error:
        return RequestedFields(error=str(error))


def problems(exporter: Exporter) -> list[Problem]:
    """What would keep the exporter from starting; empty when all is well.

    + exporter: which fields are collected
    """
    source = exporter.collectors_file or "exporter.counters"
    try:
        parse_collectors(collectors(exporter))
    except (OSError, UnicodeDecodeError) as error:
        return [Problem("", f"exporter.collectors_file: {error}", "name a file that can be read")]
    except (UnknownField, CollectorsError) as error:
        remedy = "correct it: dcgm-exporter would not start with it"
        return [Problem("", f"{source}: {error}", remedy)]
    return []
