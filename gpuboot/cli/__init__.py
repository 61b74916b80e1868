"""The `gpuboot` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuboot.cli import autoscaling, docs, runs
from gpuboot.cli.check import check
from gpuboot.cli.drift import drift
from gpuboot.cli.init import init
from gpuboot.cli.outdated import outdated
from gpuboot.cli.past_runs import past_runs
from gpuboot.cli.plan import plan
from gpuboot.cli.query import query
from gpuboot.verify.report.model import POINTER, ReportError, load

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="From bare servers to proven GPUs. Deploy with: pyinfra INVENTORY deploys/site.py",
)
app.command()(init)
app.command()(check)
app.command()(plan)
app.command()(drift)
app.command()(outdated)
app.command()(query)
app.command("runs")(past_runs)
app.add_typer(autoscaling.app, name="autoscaling")
app.add_typer(docs.app, name="docs")
VERIFY = "deploys/verify.py"


@app.command()
def verify(
    inventory: runs.Inventory,
    json: Annotated[bool, typer.Option("--json", help="Print verify.json on stdout.")] = False,
    data: runs.Data = None,
) -> None:
    """Prove every GPU of a cluster, and change nothing.

    Exit code: 0 proven, 1 failed, 2 not covered or could not tell.
    """
    ended = runs.pyinfra(inventory, VERIFY, runs.options(data), answer=POINTER)
    path = Path(ended.answer) / "verify.json"
    if not ended.answer or not path.exists():
        # nothing was verified: a wrong inventory is an error, a killed run tells nothing
        raise typer.Exit(1 if ended.code == 1 else runs.COULD_NOT_TELL)
    try:
        proof = load(path)
    except ReportError as error:
        runs.stop(str(error))
    if json:
        print(path.read_text(encoding="utf-8"), end="")
    raise typer.Exit(proof.exit)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a report.")] = Path("reports/latest"),
) -> None:
    """Show a report again, and write its HTML and JUnit files again from its JSON files."""
    from gpuboot.verify.report.run import write_page
    from gpuboot.verify.report.terminal import show
    from gpuboot.verify.report.writer import write

    write_page(folder)
    try:
        proof = load(folder / "verify.json")
    except ReportError as error:
        runs.stop(f"{error}\n    remedy: `gpuboot verify INVENTORY` makes one")
    write(proof, folder)
    show(proof, folder)
    raise typer.Exit(proof.exit)


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


if __name__ == "__main__":
    app()
