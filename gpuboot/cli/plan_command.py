"""`gpuboot plan`: what a run would change, for programs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from gpuboot.cli import runs
from gpuboot.config.exit_codes import COULD_NOT_TELL, FAILED, OK
from gpuboot.plan import POINTER

CHANGES = 2


def plan(
    inventory: runs.Inventory,
    deploy: runs.Deploy = runs.SITE,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 where something would change.")
    ] = False,
    data: runs.Data = None,
    same_sudo_password: runs.SameSudoPassword = False,
) -> None:
    """Print as JSON what a run would change and what it would cost. Changes nothing.

    For people: pyinfra INVENTORY deploys/site.py --dry. Exit code: 0, 1 where a run may not start,
    2 where a host did not tell what has to be compared (with --detailed-exitcode: 1).
    """
    options = runs.options(data, same_sudo_password)
    result = runs.pyinfra(inventory, deploy, options, answer=POINTER, dry=True)
    if result.code != OK or not result.answer:
        could_not_tell = result.code != FAILED and not detailed_exitcode
        raise typer.Exit(COULD_NOT_TELL if could_not_tell else FAILED)
    print(result.answer, end="")
    changes = json.loads(result.answer)["changes"]
    raise typer.Exit(CHANGES if changes and detailed_exitcode else 0)
