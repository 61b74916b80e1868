"""The `gpuboot` command."""

from __future__ import annotations

import typer

from gpuboot.cli import autoscaling, docs, mirror
from gpuboot.cli.bundle import bundle
from gpuboot.cli.capacity import capacity
from gpuboot.cli.check import check
from gpuboot.cli.conformance import conformance
from gpuboot.cli.cost import cost
from gpuboot.cli.diagnose import diagnose
from gpuboot.cli.drift import drift
from gpuboot.cli.ending import Commands
from gpuboot.cli.history import history
from gpuboot.cli.init import init
from gpuboot.cli.load import load
from gpuboot.cli.outdated import outdated
from gpuboot.cli.past_runs import past_runs
from gpuboot.cli.plan import plan
from gpuboot.cli.profile import profile
from gpuboot.cli.proof import report, verify
from gpuboot.cli.query import query
from gpuboot.cli.remediate import remediate

app = typer.Typer(
    cls=Commands,
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
app.command()(cost)
app.command()(profile)
app.command()(load)
app.command()(conformance)
app.command()(capacity)
app.command()(verify)
app.command()(diagnose)
app.command()(bundle)
app.command()(remediate)
app.command()(report)
app.command()(history)
app.command("runs")(past_runs)
app.add_typer(autoscaling.app, name="autoscaling")
app.add_typer(mirror.app, name="mirror")
app.add_typer(docs.app, name="docs")


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

    _show("", lock(Settings()).model_dump(mode="json"))


def _show(prefix: str, tree: dict[str, object]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict):
            _show(f"{prefix}{key}.", value)
        else:
            print(f"{prefix}{key:<{max(1, 40 - len(prefix))}} {value or '(not pinned)'}")


if __name__ == "__main__":
    app()
