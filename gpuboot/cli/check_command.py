"""`gpuboot check`: preflight alone, of any inventory."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from gpuboot.cli import runs

if TYPE_CHECKING:
    from gpuboot.hosts.reading import Reading

DEPLOY = "deploys/check.py"


def check(
    inventory: runs.Inventory,
    as_json: runs.AsJson = False,
    data: runs.Data = None,
    same_sudo_password: runs.SameSudoPassword = False,
) -> None:
    """Read all hosts of an inventory and name every problem a run would stop at. Changes nothing.

    Exit code: 0 a run may start, 1 it may not.
    """
    from gpuboot.hosts.reading import FINDINGS, from_json

    options = runs.options(data, same_sudo_password)
    result = runs.pyinfra(inventory, DEPLOY, options, answer=FINDINGS)
    reading = from_json(result.answer) if result.answer else None
    # without an answer nobody knows: pyinfra has told why, or was interrupted
    passed = result.code == 0 and reading is not None and not reading.problems
    if as_json and reading is not None:
        print(_document(inventory, passed, reading))
    if passed:
        typer.echo(f"{inventory}: no problem, a run may start; see its plan with --dry", err=True)
    raise typer.Exit(0 if passed else 1)


def _document(inventory: str, passed: bool, reading: Reading) -> str:
    """The problems and warnings, for programs."""
    document = {
        "inventory": inventory,
        "passed": passed,
        "problems": [asdict(problem) for problem in reading.problems],
        "warnings": list(reading.warnings),
    }
    return json.dumps(document, indent=1)
