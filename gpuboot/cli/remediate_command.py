"""`gpuboot remediate`: which GPU nodes would be repaired, how, and why others would not; `--act`
repairs them.
"""

from __future__ import annotations

import json as json_format
from typing import Annotated, Any

import typer

from gpuboot.cli import runs

DEPLOY = "deploys/remediate.py"
_ACT = {"GPUBOOT_ACT": "1"}


def remediate(
    inventory: runs.Inventory,
    act: Annotated[
        bool, typer.Option("--act", help="Repair them, instead of only telling.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --act: do not ask first.")] = False,
    json: runs.AsJson = False,
    data: runs.Data = None,
) -> None:
    """Tell which GPU nodes have to be repaired, what would be done, and why not.

    Changes nothing without --act; with it, stdout gets one line of JSON for each step as it is
    taken. Exit code: 0 none, 1 there are nodes to look at, 2 could not tell.
    """
    from gpuboot.repair import repair_report

    if yes and not act:
        runs.stop("-y goes with --act\n    remedy: leave it out, or add --act")
    if not act or not yes:
        document = _assess(inventory, data)
        show = not act and json
        typer.echo(
            json_format.dumps(document, indent=1) if show else repair_report.text(document), err=act
        )
        if not act or repair_report.exit_code(document) != repair_report.ACTION_NEEDED:
            raise typer.Exit(repair_report.exit_code(document))
        _confirm()
    document = _acted(inventory, data)
    typer.echo(repair_report.text(document), err=True)
    if json:
        print(json_format.dumps(document))
    raise typer.Exit(repair_report.exit_code(document))


def _confirm() -> None:
    if not runs.is_terminal():
        cause = "standard input is no terminal, so nobody can answer whether to go on"
        runs.stop(f"{cause}\n    remedy: look at what would be done, then run with --act -y")
    if not typer.confirm("Do that?", err=True):
        runs.stop("nothing was done")


def _assess(inventory: str, data: list[str] | None) -> dict[str, Any]:
    result = runs.pyinfra(inventory, DEPLOY, runs.options(data), capture_output=True)
    return _answer(result)


def _acted(inventory: str, data: list[str] | None) -> dict[str, Any]:
    """Run the repairs, whose steps are printed as they are taken; the answer."""
    return _answer(runs.pyinfra(inventory, DEPLOY, runs.options(data), _ACT))


def _answer(result: runs.PyinfraResult) -> dict[str, Any]:
    if not result.answer:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    document: dict[str, Any] = json_format.loads(result.answer)
    return document
