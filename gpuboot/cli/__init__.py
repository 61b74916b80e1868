"""The `gpuboot` command."""

from __future__ import annotations

import typer

from gpuboot.cli import autoscaling_command, docs_command, mirror_command
from gpuboot.cli.capacity_command import capacity
from gpuboot.cli.check_command import check
from gpuboot.cli.conformance_command import conformance
from gpuboot.cli.cost_command import cost
from gpuboot.cli.diagnose_command import diagnose
from gpuboot.cli.drift_command import drift
from gpuboot.cli.ending import Commands
from gpuboot.cli.init_command import init
from gpuboot.cli.load_command import load
from gpuboot.cli.outdated_command import outdated
from gpuboot.cli.plan_command import plan
from gpuboot.cli.profile_command import profile
from gpuboot.cli.proof import report, verify
from gpuboot.cli.query_command import query
from gpuboot.cli.remediate_command import remediate
from gpuboot.cli.reports_command import gpus, past_runs

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
app.add_typer(autoscaling_command.app, name="autoscaling")
app.add_typer(mirror_command.app, name="mirror")
app.add_typer(docs_command.app, name="docs")


if __name__ == "__main__":
    app()
