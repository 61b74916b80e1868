"""The report on a terminal: a row per GPU, then what is wrong and what to do, then totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpuboot.verify.findings import ROW_LINKS, Status
from gpuboot.verify.report.cases import Case, Step, cases
from gpuboot.verify.report.report_model import SIMULATED, Report

MARKS: dict[Status, tuple[str, str]] = {
    "pass": ("✓", "green"),
    "fail": ("✗", "bold red"),
    "not_covered": ("–", "yellow"),
    "unknown": ("?", "magenta"),
}
WORDS = {
    "proven": ("PROVEN", "bold green"),
    "answering": ("ANSWERING", "bold green"),
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
    links = [link for link in ROW_LINKS if any(link in row.links for row in report.gpus)]
    out.print(_matrix(report, links))
    numbered = (Text(f"{number} {link}", "italic") for number, link in enumerate(links, start=1))
    marked = (_mark(status).append(f" {link}") for link, status in report.cluster_links.items())
    for line in _flow(numbered, out.width, 2) + _flow(marked, out.width, 3, "cluster  "):
        out.print(line)
    for case in cases(report.findings, report.parents):
        _print_case(out, case)
    _print_alerts(out, report)
    _summary(out, report, folder)


def _matrix(report: Report, links: Sequence[str]) -> Table:
    """The table of GPUs and links for 80 columns: links are numbered."""
    title = f"Proof chain of {report.cluster}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("node")
    table.add_column("GPU", no_wrap=True, min_width=40)
    for number, _ in enumerate(links, start=1):
        table.add_column(str(number), justify="center", no_wrap=True)
    for row in report.gpus:
        table.add_row(row.node, row.title, *_marks(row.links, links))
        for item in row.instances:
            table.add_row(f"  {item.profile}", item.uuid, *_marks(item.links, links))
    return table


def _flow(parts: Iterable[Text], width: int, gap: int, head: str = "") -> list[Text]:
    """Lines in which no part is broken.

    + width: columns of the terminal; gap: between parts; head: before the first of them
    """
    lines: list[Text] = []
    for part in parts:
        if not lines or lines[-1].cell_len + gap + part.cell_len > width:
            lines.append(Text(" " * len(head) if lines else head))
        else:
            lines[-1].append(" " * gap)
        lines[-1].append_text(part)
    return lines


def _marks(states: Mapping[str, Status], links: Iterable[str]) -> list[Text]:
    return [_mark(states[link]) if link in states else Text(" ") for link in links]


def _mark(status: Status) -> Text:
    mark, style = MARKS[status]
    return Text().append(mark, style)


def _print_case(out: Console, case: Case) -> None:
    nodes = ", ".join(place.node or "cluster" for place in case.locations)
    line = Text().append_text(_mark(case.status)).append(f" {nodes}", "bold")
    out.print(line.append(f"  {_step_text(case.cause)}"), soft_wrap=True)
    for uuid in (uuid for place in case.locations for uuid in place.uuids):
        out.print(Text(f"    {uuid}"), soft_wrap=True)
    if case.cause.remedy:
        out.print(Text(f"    remedy: {case.cause.remedy}", style="cyan"), soft_wrap=True)
    for step in case.later_steps:
        out.print(Text("    also ").append_text(_mark(step.status)).append(f" {_step_text(step)}"),
                  soft_wrap=True)  # fmt: skip
        if step.remedy and step.status == "fail" and step.remedy != case.cause.remedy:
            out.print(Text(f"        remedy: {step.remedy}", style="cyan"), soft_wrap=True)


def _step_text(step: Step) -> str:
    return f"{', '.join(step.links)}: {'; '.join(step.details)}"


def _print_alerts(out: Console, report: Report) -> None:
    """What fires, whatever the proof says: a GPU that works may have to be replaced."""
    node_by_uuid = {row.uuid: row.node for row in report.gpus if row.uuid}
    for item in report.alerts or ():
        location = node_by_uuid.get(item.gpu_uuid, item.node) or "cluster"
        line = Text("! ", "bold yellow").append(location, "bold").append(f"  {item.name} fires")
        action = f", {item.action}" if item.action not in {"", "none"} else ""
        out.print(line.append(f" ({item.severity}{action}): {item.summary}"), soft_wrap=True)
        if item.gpu_uuid:
            out.print(Text(f"    {item.gpu_uuid} {item.part}".rstrip()), soft_wrap=True)
        if item.runbook:
            out.print(Text(f"    runbook: {item.runbook}", style="cyan"), soft_wrap=True)


def _summary(out: Console, report: Report, folder: Path | None) -> None:
    word, style = WORDS[report.verdict]
    totals = report.totals
    good = (
        f"{totals['answering']} of {totals['gpus']} GPUs answer; nothing was computed on them,"
        if report.level == "quick"
        else f"{totals['proven']} of {totals['gpus']} GPUs proven,"
    )
    text = Text.assemble((word, style)).append(
        f"  {good} {totals['failed']} failed, "
        f"{totals['not_covered']} not covered; {len(report.findings)} findings, "
        f"{report.seconds:.1f} s"
    )
    out.print(text)
    if report.nodes:
        out.print(Text(f"only these nodes: {', '.join(report.nodes)}"))
    if report.simulated:
        texts = "; ".join(f"“{item}”" for item in report.simulated)
        out.print(Text(SIMULATED.format(texts), "yellow"))
    if folder is not None:
        out.print(Text(f"report: {folder}/verify.html", "dim"))
