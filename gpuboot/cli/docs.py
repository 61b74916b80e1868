"""`gpuboot docs`: the pages of docs/ that are made from the tables in the code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="Print the pages of docs/ that are made from the code's tables.",
)

Check = Annotated[
    Path | None, typer.Option("--check", help="Compare with this file; exit 1 if it differs.")
]


@app.command()
def settings(check: Check = None) -> None:
    """Print docs/settings.md: every setting with its default and meaning."""
    from gpuboot.docs.settings import settings_markdown

    _page(settings_markdown, check, "settings")


@app.command()
def metrics(check: Check = None) -> None:
    """Print docs/metrics.md: every GPU metric with its unit and meaning."""
    from gpuboot.docs.metrics import metrics_markdown

    _page(metrics_markdown, check, "metrics")


@app.command()
def checks(check: Check = None) -> None:
    """Print docs/checks.md: every link of the proof chain, and what fails it."""
    from gpuboot.docs.checks import checks_markdown

    _page(checks_markdown, check, "checks")


@app.command()
def causes(check: Check = None) -> None:
    """Print docs/causes.md: what `gpuboot diagnose` knows, and what is done about it."""
    from gpuboot.docs.causes import causes_markdown

    _page(causes_markdown, check, "causes")


@app.command("exit-codes")
def exit_codes(check: Check = None) -> None:
    """Print docs/exit-codes.md: how every command ends."""
    from gpuboot.docs.exit_codes import exit_codes_markdown

    _page(exit_codes_markdown, check, "exit-codes")


@app.command()
def runbooks(
    folder: Annotated[Path, typer.Argument(help="Where the pages stand.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only compare; exit 1 if a page differs.")
    ] = False,
) -> None:
    """Write docs/runbooks: one page for each alert."""
    from gpuboot.docs import runbooks as pages

    if not check:
        pages.write(folder)
        return
    outdated = pages.outdated(folder)
    if outdated:
        names = ", ".join(outdated)
        remedy = f"gpuboot docs runbooks {folder}"
        typer.echo(f"{folder}: out of date: {names}\n    remedy: {remedy}", err=True)
        raise typer.Exit(1)


def _page(make: Callable[[], str], check: Path | None, name: str) -> None:
    text = make()
    if check is None:
        print(text, end="")
    elif not check.is_file() or check.read_text(encoding="utf-8") != text:
        typer.echo(f"{check} is out of date\n    remedy: gpuboot docs {name} > {check}", err=True)
        raise typer.Exit(1)
