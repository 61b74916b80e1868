"""Tables for a terminal, as lines without a box: of any width, so that programs can read them."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH = 10_000  # characters: nothing is broken


def table_lines(
    rows: Sequence[Sequence[str]], numbers: Container[int] = (), indent: str = ""
) -> list[str]:
    """Rows of cells as lines. + numbers: columns that stand to the right"""
    table = Table.grid(padding=(0, 2, 0, 0))
    for column in range(len(rows[0])):
        table.add_column(justify="right" if column in numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(width=_WIDTH, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return [f"{indent}{line}".rstrip() for line in capture.get().splitlines()]
