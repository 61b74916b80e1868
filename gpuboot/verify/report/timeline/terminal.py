"""Where the time of a run went, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuboot.verify.report.timeline.table import Row, rows

_SHORTEST_S = 0.05  # of a row that is told


def lines(run: Mapping[str, Any]) -> Iterator[str]:
    """A table: phase, seconds, seconds waited, commands, changes, and the host that took longest.

    + run: as run.json has it
    """
    shown_rows = [row for row in rows(run) if row.seconds >= _SHORTEST_S]
    yield "where the time went:"
    yield from aligned(
        [("", "seconds", "waited", "commands", "changed", "slowest host"), *map(_cells, shown_rows)]
    )


def longest(run: Mapping[str, Any], limit: int = 3) -> str:
    """The rows that took longest, in one line: `Verify 8.9 s, Kubernetes 5.8 s`."""
    slowest = sorted(rows(run), key=lambda row: -row.seconds)[:limit]
    return ", ".join(f"{row.name} {row.seconds:.1f} s" for row in slowest)


def aligned(table: Sequence[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """Rows of cells as lines; numbers to the right.

    + texts: how many of the last columns are texts, as the first one is
    """
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    numbers = range(1, len(widths) - texts)
    for row in table:
        cells = [
            cell.rjust(widths[column]) if column in numbers else cell.ljust(widths[column])
            for column, cell in enumerate(row)
        ]
        yield f"  {'  '.join(cells)}".rstrip()


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
