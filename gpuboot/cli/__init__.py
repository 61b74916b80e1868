"""The `gpuboot` command."""

from __future__ import annotations

import typer

from gpuboot.cli import autoscaling, docs, mirror
from gpuboot.cli.capacity import capacity
from gpuboot.cli.check import check
from gpuboot.cli.conformance import conformance
from gpuboot.cli.cost import cost
from gpuboot.cli.diagnose import diagnose
from gpuboot.cli.drift import drift
from gpuboot.cli.ending import Commands
from gpuboot.cli.gpu_history import gpus
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
reports = typer.Typer(
    no_args_is_help=True,
    help="What is in the folder of reports: a proof, earlier runs, what happened to each GPU.",
)
reports.command("show")(report)
reports.command("runs")(past_runs)
reports.command("gpus")(gpus)
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
app.command()(remediate)
app.add_typer(reports, name="report")
app.add_typer(autoscaling.app, name="autoscaling")
app.add_typer(mirror.app, name="mirror")
app.add_typer(docs.app, name="docs")


if __name__ == "__main__":
    app()
