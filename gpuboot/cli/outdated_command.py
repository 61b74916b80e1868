"""`gpuboot outdated`: what the version lock has, beside what runs and what upstream serves now."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from gpuboot.cli import ending, runs
from gpuboot.config.exit_codes import with_unwritten

if TYPE_CHECKING:
    from gpuboot.config.outdated import Row
    from gpuboot.config.versions import Lock

DEPLOY = "deploys/outdated.py"
NEWER = 1
_DIGESTS = {"none": "without a digest", "first seen": "with the digest of their first download"}
_WIDTH = 150  # of the table: no version is cut short, whatever the width of the terminal


def outdated(
    inventory: runs.Inventory,
    json: runs.AsJson = False,
    metrics: runs.Metrics = None,
    data: runs.Data = None,
) -> None:
    """Compare the version lock with what runs, and with what the configured repositories serve.

    Also tells when support of it and the keys of the repositories end. Changes nothing.

    Exit code: 0 nothing newer, 1 something newer, 2 could not tell.
    """
    from gpuboot.config import outdated as versions
    from gpuboot.config.versions import Lock
    from gpuboot.hosts import repository_keys
    from gpuboot.hosts.repository_keys import RepositoryKey
    from gpuboot.verify.report.writer import write_atomically

    runs.require_folder(metrics)
    result = runs.pyinfra(inventory, DEPLOY, runs.options(data), capture_output=True)
    answers = [json_format.loads(line) for line in result.answer.splitlines()]
    if result.code != 0 or not answers:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    lock = Lock.model_validate(answers[0]["lock"])
    rows = _rows(lock, answers)
    keys = [RepositoryKey(**key) for answer in answers for key in answer["keys"]]
    key_ends = repository_keys.ends(keys)
    key_rows = versions.key_rows(key_ends)
    if json:
        print(json_format.dumps(versions.to_json([*rows, *key_rows]), indent=1))
    else:
        _show(rows, key_rows, versions.silent(answers, lock))
    code = NEWER if any(row.is_newer for row in rows) else 0
    if metrics:
        text = versions.metrics(rows, key_ends, answers[0]["cluster"])
        success = ending.try_write(partial(write_atomically, metrics, text), metrics)
        code = with_unwritten(code, not success)
    raise typer.Exit(code)


def _rows(lock: Lock, answers: Sequence[dict[str, Any]]) -> list[Row]:
    from gpuboot.config import first_digests, outdated

    first_seen = set(first_digests.read(answers[0]["cluster"]).values())
    return outdated.rows(lock, outdated.served(answers), outdated.installed(answers), first_seen)


def _show(rows: Sequence[Row], key_rows: Sequence[Row], silent: Sequence[str]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE)
    for name in ("version", "installed", "locked", "newest", "support ends"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        newest = ", ".join(text for text in (row.patch, row.newest) if text)
        if not row.unknown or row.installed or row.end:
            end = row.end or f"not known, as of {row.as_of}"
            table.add_row(row.key, ", ".join(row.installed), row.locked, newest, end)
    console = Console(highlight=False, width=_WIDTH)
    console.print(table)
    for row in rows:
        for remark in filter(None, (row.verdict, *row.changes)):
            typer.echo(f"{row.key}: {remark}")
    if not any(row.is_newer for row in rows):
        typer.echo("nothing newer is served")
    unknown = [row for row in rows if row.unknown]
    typer.echo(f"what is served is not known: {', '.join(row.key for row in unknown)}")
    for digest, text in _DIGESTS.items():
        if keys := [row.key for row in rows if row.digest == digest]:
            typer.echo(f"{text}: {', '.join(keys)}")
    for row in key_rows:
        typer.echo(f"{row.key} ({row.locked}) ends: {row.end}")
    for name in silent:
        typer.echo(f"did not answer: {name}")
