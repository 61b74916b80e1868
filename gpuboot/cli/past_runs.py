"""`gpuboot report runs`: earlier runs."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from json import dumps
from typing import Annotated

import typer

from gpuboot.cli.runs import REPORTS, AsJson, Reports, stop


def past_runs(
    cluster: Annotated[str, typer.Argument(help="Its name (cluster.name); default: all.")] = "",
    last: Annotated[int, typer.Option("--last", min=1, help="How many runs.")] = 10,
    reports: Reports = REPORTS,
    as_json: AsJson = False,
) -> None:
    """List earlier runs, the newest first.

    Exit code: 0, or 2 where there is no run to tell of.
    """
    from gpuboot.plan.history import past_runs as read
    from gpuboot.verify.report import past_runs as report

    # gpuboot 0.2 and before did not write when things happened
    current = (item for item in read(reports, cluster) if "spans" in item[1])
    summaries = [report.summary(*item) for item in islice(current, last)]
    if not summaries:
        suffix = f" of cluster {cluster}" if cluster else ""
        stop(f"no run{suffix} in {reports}\n    remedy: name the folder of reports by --reports")
    if as_json:
        print(dumps({"runs": [asdict(item) for item in summaries]}, indent=2))
    else:
        print("\n".join(report.lines(summaries)))
