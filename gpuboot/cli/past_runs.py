"""`gpuboot report runs`: earlier runs, and the newest compared with one that did the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from gpuboot.cli.runs import REPORTS, AsJson, Reports, stop

_LOOKED_THROUGH = 200  # newest runs, for one that did the same

PastRuns = Sequence[tuple[Path, Mapping[str, Any]]]


def past_runs(
    cluster: Annotated[str, typer.Argument(help="Its name (cluster.name); default: all.")] = "",
    last: Annotated[int, typer.Option("--last", min=1, help="How many runs.")] = 10,
    against: Annotated[
        str, typer.Option("--against", help="Folder of the run to compare the newest with.")
    ] = "",
    reports: Reports = REPORTS,
    as_json: AsJson = False,
) -> None:
    """List earlier runs, and compare the newest with the last one that did the same.

    The same: same deploy, same hosts, the same operations changed something. Exit code: 0, or 2
    where there is no run to tell of.
    """
    from gpuboot.plan.history import past_runs as read
    from gpuboot.verify.report import past_runs as report

    # gpuboot 0.2 and before did not write when things happened
    current = (item for item in read(reports, cluster) if "spans" in item[1])
    stored_runs = list(islice(current, max(last, _LOOKED_THROUGH)))
    if not stored_runs:
        suffix = f" of cluster {cluster}" if cluster else ""
        stop(f"no run{suffix} in {reports}\n    remedy: name the folder of reports by --reports")
    newest = stored_runs[0][1]
    older = (
        _find_run(stored_runs, against) if against else report.same_kind(newest, stored_runs[1:])
    )
    compared = report.differences(newest, older[1]) if older else []
    summaries = [report.summary(*item) for item in stored_runs[:last]]
    if as_json:
        print(dumps(report.to_json(summaries, older[0].name if older else "", compared), indent=2))
        return
    print("\n".join(report.lines(summaries)))
    if older is None:
        print("\nno earlier run did the same as the newest; --against names one to compare with")
        return
    print(f"\nthe newest against {older[0].name}")
    print("\n".join(report.difference_lines(compared)))


def _find_run(stored_runs: PastRuns, folder: str) -> tuple[Path, Mapping[str, Any]]:
    name = Path(folder).name
    match = next((item for item in stored_runs if item[0].name == name), None)
    if match is None:
        remedy = "`gpuboot report runs --last 50` lists them"
        stop(f"no run {name} among these reports\n    remedy: {remedy}")
    return match
