"""`gpuboot report gpus` and `report runs`: each GPU over time, and earlier runs."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from json import dumps
from typing import Annotated

import typer

from gpuboot.cli.runs import REPORTS, AsJson, Reports, stop


def gpus(
    which: Annotated[
        str, typer.Argument(help="A node, or how a GPU's UUID begins; default: all GPUs.")
    ] = "",
    reports: Reports = REPORTS,
    as_json: AsJson = False,
) -> None:
    """List all GPUs that were ever verified: where they are, how they are, faults and moves.

    Of one GPU all that happened to it is listed. Exit code: 0, or 2 where nothing is known.
    """
    from gpuboot.plan.terminal_tables import table_lines
    from gpuboot.verify.history import events
    from gpuboot.verify.history.history_files import HistoryError, read, read_last

    folder = reports / "history"
    try:
        histories, last = read(folder), read_last(folder)
    except HistoryError as error:
        stop(f"{error}\n    remedy: mend or remove that line; the others stay as they are")
    selected = [
        gpu
        for uuid, gpu in histories.items()
        if not which or uuid.startswith(which) or gpu.place[1] == which
    ]
    if not selected:
        suffix = f" of {which}" if which else ""
        stop(f"no GPU{suffix} in {folder}\n    remedy: `gpuboot verify INVENTORY` notes them")
    if as_json:
        print(dumps({gpu.uuid: list(map(events.to_json, gpu.events)) for gpu in selected}))
        return
    rows = sorted((events.summary(gpu, last) for gpu in selected), key=lambda row: row[2:4])
    print("\n".join(table_lines([events.COLUMNS, *rows])))
    if len(selected) == 1 and which:
        print()
        print("\n".join(table_lines(list(map(events.cells, selected[0].events)))))


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
