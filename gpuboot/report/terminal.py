"""The report on a terminal: a row per GPU, then what is wrong and what to do, then totals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpuboot.checks.model import CLUSTER_LINKS, GPU_LINKS, Finding, Status
from gpuboot.report.model import Report

MARKS: dict[Status, tuple[str, str]] = {
    "pass": ("✓", "green"),
    "fail": ("✗", "bold red"),
    "not_covered": ("–", "yellow"),
    "unknown": ("?", "magenta"),
}
WORDS = {
    "proven": ("PROVEN", "bold green"),
    "failed": ("FAILED", "bold red"),
    "not_covered": ("NOT COVERED", "bold yellow"),
}
_SHORT = {"nvidia-smi": "smi", "allocatable": "offered", "attribution": "pod label"}


def show(report: Report, folder: Path | None = None, console: Console | None = None) -> None:
    """Print the report.

    + folder: where its files are
    + console: default: standard error, because standard output may carry JSON
    """
    out = console or Console(stderr=True)
    out.print()
    out.print(_matrix(report))
    if links := report.cluster_links:
        line = Text("cluster  ")
        for link, status in links.items():
            line.append_text(_mark(status)).append(f" {CLUSTER_LINKS[link]}   ")
        out.print(line)
    for status in ("fail", "unknown", "not_covered"):
        _explain(out, _alike(report.of(status)))
    _sum_up(out, report, folder)


def _matrix(report: Report) -> Table:
    table = Table(title=f"{report.cluster}: proof chain", title_justify="left", pad_edge=False)
    table.add_column("node")
    table.add_column("GPU", no_wrap=True)
    links = [link for link in GPU_LINKS if any(link in row.links for row in report.gpus)]
    for link in links:
        table.add_column(_SHORT.get(link, link), justify="center")
    for row in report.gpus:
        marks = [_mark(row.links[link]) if link in row.links else Text(" ") for link in links]
        table.add_row(row.node, row.uuid or f"? at {row.pci}", *marks)
    return table


def _mark(status: Status) -> Text:
    mark, style = MARKS[status]
    return Text(mark, style=style)


def _alike(found: Iterable[Finding]) -> list[tuple[Finding, list[str]]]:
    """Findings that differ only in the GPU, said once with all their GPUs."""
    groups: dict[tuple[str, ...], tuple[Finding, list[str]]] = {}
    for item in found:
        key = (item.link, item.node, item.status, item.detail)
        groups.setdefault(key, (item, []))[1].extend([item.gpu_uuid] if item.gpu_uuid else [])
    return list(groups.values())


def _explain(out: Console, groups: Iterable[tuple[Finding, list[str]]]) -> None:
    for item, uuids in groups:
        line = Text().append_text(_mark(item.status)).append(f" {item.node or 'cluster'}", "bold")
        line.append(f"  {item.link}: {item.detail}")
        out.print(line, soft_wrap=True)
        for uuid in uuids:
            out.print(Text(f"    {uuid}"), soft_wrap=True)
        if item.remedy:
            out.print(Text(f"    remedy: {item.remedy}", style="cyan"), soft_wrap=True)


def _sum_up(out: Console, report: Report, folder: Path | None) -> None:
    word, style = WORDS[report.verdict]
    totals = report.totals
    text = Text.assemble((word, style)).append(
        f"  {totals['proven']} of {totals['gpus']} GPUs proven, {totals['failed']} failed, "
        f"{totals['not_covered']} not covered; {len(report.findings)} findings, "
        f"{report.seconds:.1f} s"
    )
    out.print(text)
    if report.simulated:
        said = "; ".join(f"“{item}”" for item in report.simulated)
        out.print(
            Text(f"SIMULATED: no real GPU is behind this. It says so itself: {said}", "yellow")
        )
    if folder is not None:
        out.print(Text(f"report: {folder}/verify.html", "dim"))
