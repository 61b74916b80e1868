"""`gpuboot docs`: pages of docs/ and lists that are made from the tables in the code."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="What is made from the code's tables: pages of docs/, the alert rules, the version lock.",
)

PageFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The page's file. Without it: printed.")
]
Check = Annotated[bool, typer.Option("--check", help="Only compare; exit 1 if it differs.")]


# page of docs/ -> what it holds; its text is `gpuboot.docs.NAME_page.NAME_markdown`
PAGES = {
    "settings": "every setting with its default and meaning",
    "metrics": "every GPU metric with its unit and meaning",
    "checks": "every link of the proof chain, and what fails it",
    "causes": "what `gpuboot diagnose` knows, and what is done about it",
    "exit-codes": "how every command ends",
}


def _add_page(name: str, content: str) -> None:
    """The command that writes a page of `PAGES`."""
    stem = name.replace("-", "_")

    def write(file: PageFile = None, check: Check = False) -> None:
        page = import_module(f"gpuboot.docs.{stem}_page")
        _page(getattr(page, f"{stem}_markdown"), file, check, name)

    app.command(name, help=f"Write docs/{name}.md: {content}.")(write)


for _name, _content in PAGES.items():
    _add_page(_name, _content)


@app.command()
def runbooks(
    folder: Annotated[Path, typer.Argument(help="Where the pages stand.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only compare; exit 1 if a page differs.")
    ] = False,
) -> None:
    """Write docs/runbooks: one page for each alert."""
    from gpuboot.docs import runbook_pages as pages

    if not check:
        pages.write(folder)
        return
    outdated = pages.outdated(folder)
    if outdated:
        names = ", ".join(outdated)
        remedy = f"gpuboot docs runbooks {folder}"
        typer.echo(f"{folder}: out of date: {names}\n    remedy: {remedy}", err=True)
        raise typer.Exit(1)


@app.command()
def rules() -> None:
    """Print the rule file of the default settings, for `promtool check rules`."""
    import yaml

    from gpuboot.config.settings import Settings
    from gpuboot.monitoring.rules import groups

    print(yaml.safe_dump({"groups": groups(Settings(), [])}, sort_keys=False, width=100), end="")


@app.command()
def versions() -> None:
    """Print the version lock: what a run installs when the settings name nothing else."""
    from gpuboot.config.settings import Settings
    from gpuboot.config.versions import lock

    _print_tree("", lock(Settings()).model_dump(mode="json"))


def _print_tree(prefix: str, tree: dict[str, object]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict):
            _print_tree(f"{prefix}{key}.", value)
        else:
            print(f"{prefix}{key:<{max(1, 40 - len(prefix))}} {value or '(not pinned)'}")


def _page(make: Callable[[], str], file: Path | None, check: bool, name: str) -> None:
    text = make()
    if file is None and check:
        raise typer.BadParameter("--check needs the file that it compares")
    if file is None:
        print(text, end="")
    elif not check:
        file.write_text(text, encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        typer.echo(f"{file} is out of date\n    remedy: gpuboot docs {name} {file}", err=True)
        raise typer.Exit(1)
