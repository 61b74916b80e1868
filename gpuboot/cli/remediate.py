"""`gpuboot remediate`: which GPU nodes would be repaired, how, and why others would not."""

from __future__ import annotations

import json as json_format
from typing import Annotated

import typer

from gpuboot.cli import runs

DEPLOY = "deploys/remediate.py"


def remediate(
    inventory: runs.Inventory,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    data: runs.Data = None,
) -> None:
    """Tell which GPU nodes have to be repaired, what would be done, and why not. Changes nothing.

    Exit code: 0 none, 1 there are nodes to look at, 2 could not tell.
    """
    from gpuboot.kubernetes.repair import report

    ended = runs.pyinfra(inventory, DEPLOY, runs.options(data), quiet=True)
    if not ended.answer:
        runs.stop(ended.output.rstrip() or "pyinfra told nothing")
    found = json_format.loads(ended.answer)
    print(ended.answer if json else report.text(found))
    raise typer.Exit(report.exit_code(found))
