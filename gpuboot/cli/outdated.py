"""`gpuboot outdated`: what the version lock has, beside what upstream serves now."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import runs

if TYPE_CHECKING:
    from gpuboot.config.outdated import Row

DEPLOY = "deploys/outdated.py"
NEWER = 1


def outdated(
    inventory: runs.Inventory,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    data: runs.Data = None,
) -> None:
    """Compare the version lock with what the configured repositories serve. Changes nothing.

    Exit code: 0 nothing newer, 1 something newer, 2 could not tell.
    """
    from gpuboot.config import outdated as versions
    from gpuboot.config.versions import Lock

    result = runs.pyinfra(inventory, DEPLOY, runs.options(data), capture_output=True)
    answers = [json_format.loads(line) for line in result.answer.splitlines()]
    if result.code != 0 or not answers:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    lock = Lock.model_validate(answers[0]["lock"])
    rows = versions.rows(lock, versions.served(answers))
    if json:
        print(json_format.dumps(versions.to_json(rows), indent=1))
    else:
        _show(rows, versions.silent(answers, lock))
    raise typer.Exit(NEWER if any(row.is_newer for row in rows) else 0)


def _show(rows: Sequence[Row], silent: Sequence[str]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table("version", "locked", "newest of its branch", "newest", "", box=SIMPLE)
    for row in rows:
        if not row.unknown:
            table.add_row(row.key, row.locked, row.patch, row.newest, row.verdict)
    console = Console(highlight=False)
    console.print(table)
    if not any(row.is_newer for row in rows):
        console.print("nothing newer is served")
    unknown = [row for row in rows if row.unknown]
    console.print(f"not known: {', '.join(row.key for row in unknown)}")
    for name in silent:
        console.print(f"did not answer: {name}")
