"""`gpuboot runs`: earlier runs, and whether the newest took longer than one that did the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from gpuboot.cli.runs import stop

_LOOKED_THROUGH = 200  # newest runs, for one that did the same

Found = Sequence[tuple[Path, Mapping[str, Any]]]


def past_runs(
    cluster: Annotated[str, typer.Argument(help="Its name (cluster.name); default: all.")] = "",
    last: Annotated[int, typer.Option("--last", min=1, help="How many runs.")] = 10,
    against: Annotated[
        str, typer.Option("--against", help="Folder of the run to compare the newest with.")
    ] = "",
    reports: Annotated[Path, typer.Option("--reports", help="The folder verify.reports.")] = Path(
        "reports"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """List earlier runs, and compare the newest with the last one that did the same.

    The same: same deploy, same hosts, the same operations changed something. Exit code: 0, or 2
    where there is no run to tell of.
    """
    from gpuboot.plan.history import past_runs as read
    from gpuboot.verify.report import past_runs as report

    found = list(islice(read(reports, cluster), max(last, _LOOKED_THROUGH)))
    if not found:
        whose = f" of cluster {cluster}" if cluster else ""
        stop(f"no run{whose} in {reports}\n    remedy: name the folder of reports by --reports")
    newest = found[0][1]
    other = _named(found, against) if against else report.same_kind(newest, found[1:])
    compared = report.differences(newest, other[1]) if other else []
    shown = [report.summary(*item) for item in found[:last]]
    if as_json:
        print(dumps(report.to_json(shown, other[0].name if other else "", compared), indent=2))
        return
    print("\n".join(report.lines(shown)))
    if other is None:
        print("\nno earlier run did the same as the newest; --against names one to compare with")
        return
    print(f"\nthe newest against {other[0].name}")
    print("\n".join(report.difference_lines(compared)))


def _named(found: Found, folder: str) -> tuple[Path, Mapping[str, Any]]:
    name = Path(folder).name
    named = next((item for item in found if item[0].name == name), None)
    if named is None:
        stop(f"no run {name} among these reports\n    remedy: `gpuboot runs --last 50` lists them")
    return named
