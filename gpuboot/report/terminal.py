"""The report on a terminal: a row per GPU, then what is wrong and what to do, then totals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpuboot.checks.model import GPU_LINKS, Status
from gpuboot.report.model import Group, Report, group

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
            line.append_text(_mark(status)).append(f" {link}   ")
        out.print(line)
    for status in ("fail", "unknown", "not_covered"):
        _explain(out, group(report.of(status)))
    _sum_up(out, report, folder)


def _matrix(report: Report) -> Table:
    """Narrow enough for 80 columns: links are numbered, and the caption says which is which."""
    links = [link for link in GPU_LINKS if any(link in row.links for row in report.gpus)]
    caption = "  ".join(f"{number} {link}" for number, link in enumerate(links, start=1))
    table = Table(
        title=f"Proof chain of {report.cluster}",
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    table.add_column("node")
    table.add_column("GPU", no_wrap=True, min_width=40)
    for number, _ in enumerate(links, start=1):
        table.add_column(str(number), justify="center", no_wrap=True)
    for row in report.gpus:
        marks = [_mark(row.links[link]) if link in row.links else Text(" ") for link in links]
        table.add_row(row.node, row.uuid or f"? at {row.pci}", *marks)
    return table


def _mark(status: Status) -> Text:
    mark, style = MARKS[status]
    return Text(mark, style=style)


def _explain(out: Console, groups: Iterable[Group]) -> None:
    for item in groups:
        line = Text().append_text(_mark(item.status)).append(f" {item.node or 'cluster'}", "bold")
        line.append(f"  {', '.join(item.links)}: {item.detail}")
        out.print(line, soft_wrap=True)
        for uuid in item.uuids:
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
