"""Where the time of a run went, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuboot.plan.terminal_tables import table_lines
from gpuboot.verify.report.timeline.table import Row, rows

_SHORTEST_S = 0.05  # of a row that is told


def lines(run: Mapping[str, Any]) -> Iterator[str]:
    """A table: phase, seconds, seconds waited, commands, changes, and the host that took longest.

    + run: as run.json has it
    """
    shown_rows = [row for row in rows(run) if row.seconds >= _SHORTEST_S]
    yield "where the time went:"
    head = ("", "seconds", "waited", "commands", "changed", "slowest host")
    yield from table_lines([head, *map(_cells, shown_rows)], range(1, 5), indent="  ")


def longest(run: Mapping[str, Any], limit: int = 3) -> str:
    """The rows that took longest, in one line: `Verify 8.9 s, Kubernetes 5.8 s`."""
    slowest = sorted(rows(run), key=lambda row: -row.seconds)[:limit]
    return ", ".join(f"{row.name} {row.seconds:.1f} s" for row in slowest)


def _cells(row: Row) -> tuple[str, ...]:
    share = row.hosts.get(row.slowest)
    return (
        row.name,
        f"{row.seconds:.1f}",
        f"{row.waited:.1f}" if row.waited >= _SHORTEST_S else "",
        str(row.commands or ""),
        str(row.changes or ""),
        f"{row.slowest} {share.seconds:.1f} s" if share else "",
    )
