"""The `gpuboot` command: verify a cluster, show its report, print what can be set."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gpuboot.cli import autoscaling
from gpuboot.cli.query import query
from gpuboot.verify.report.model import ReportError, load

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="From bare servers to proven GPUs. Deploy with: pyinfra INVENTORY deploys/site.py",
)
app.command()(query)
app.add_typer(autoscaling.app, name="autoscaling")
COULD_NOT_TELL = 2
VERIFY = "deploys/verify.py"
_POINTER = "GPUBOOT_REPORT_POINTER"  # deploys/run/report.py writes the report's folder there

Check = Annotated[
    Path | None, typer.Option("--check", help="Compare with this file; exit 1 if it differs.")
]


@app.command()
def verify(
    inventory: Annotated[str, typer.Argument(help="pyinfra inventory, e.g. inventories/lab.py")],
    json: Annotated[bool, typer.Option("--json", help="Print verify.json on stdout.")] = False,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="KEY=VALUE of host data, as for pyinfra.")
    ] = None,
) -> None:
    """Prove every GPU of a cluster, and change nothing.

    Exit code: 0 proven, 1 failed, 2 not covered or could not tell.
    """
    if not Path(VERIFY).is_file():
        _stop(f"{VERIFY} is not here\n    remedy: run this in the folder of the gpuboot project")
    with tempfile.TemporaryDirectory(prefix="gpuboot-") as folder:
        pointer = Path(folder) / "report"
        command = [sys.executable, "-m", "pyinfra", inventory, VERIFY, "-y"]
        for item in data or []:
            command += ["--data", item]
        # stdout of pyinfra is for its own JSON; all that a person reads goes to stderr
        ran = subprocess.run(command, env={**os.environ, _POINTER: str(pointer)}, stdout=sys.stderr)
        report = pointer.read_text(encoding="utf-8") if pointer.exists() else ""
    path = Path(report) / "verify.json"
    if not report or not path.exists():
        # nothing was verified: a wrong inventory is an error, a killed run tells nothing
        raise typer.Exit(1 if ran.returncode == 1 else COULD_NOT_TELL)
    try:
        found = load(path)
    except ReportError as error:
        _stop(str(error))
    if json:
        print(path.read_text(encoding="utf-8"), end="")
    raise typer.Exit(found.exit)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a report.")] = Path("reports/latest"),
) -> None:
    """Show a report again, and write its HTML and JUnit files anew from verify.json."""
    from gpuboot.verify.report.terminal import show
    from gpuboot.verify.report.writer import write

    try:
        found = load(folder / "verify.json")
    except ReportError as error:
        _stop(f"{error}\n    remedy: `gpuboot verify INVENTORY` makes one")
    write(found, folder)
    show(found, folder)
    raise typer.Exit(found.exit)


@app.command()
def settings(check: Check = None) -> None:
    """Print docs/settings.md: every setting with its default and meaning."""
    from gpuboot.docs.settings import settings_markdown

    _document(settings_markdown, check, "settings")


@app.command()
def metrics(check: Check = None) -> None:
    """Print docs/metrics.md: every GPU metric with its unit and meaning."""
    from gpuboot.docs.metrics import metrics_markdown

    _document(metrics_markdown, check, "metrics")


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
        typer.echo(
            f"{folder}: out of date: {', '.join(outdated)}\n    remedy: gpuboot runbooks {folder}",
            err=True,
        )
        raise typer.Exit(1)


@app.command()
def rules() -> None:
    """Print the rule file of the default settings, for `promtool check rules`."""
    import yaml

    from gpuboot.config.settings import Settings
    from gpuboot.rules import groups

    print(yaml.safe_dump({"groups": groups(Settings(), [])}, sort_keys=False, width=100), end="")


@app.command()
def versions() -> None:
    """Print the version lock: what a run installs when the settings name nothing else."""
    from gpuboot.config.settings import Settings
    from gpuboot.config.versions import lock

    _show("", lock(Settings()).model_dump(mode="json"))


def _show(prefix: str, tree: dict[str, object]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict):
            _show(f"{prefix}{key}.", value)
        else:
            print(f"{prefix}{key:<{max(1, 40 - len(prefix))}} {value or '(not pinned)'}")


def _document(make: Callable[[], str], check: Path | None, name: str) -> None:
    text = make()
    if check is None:
        print(text, end="")
    elif not check.is_file() or check.read_text(encoding="utf-8") != text:
        typer.echo(f"{check} is out of date\n    remedy: gpuboot {name} > {check}", err=True)
        raise typer.Exit(1)


def _stop(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(COULD_NOT_TELL)


if __name__ == "__main__":
    app()
