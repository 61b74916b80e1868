"""`gpuboot report gpus`: what is known of each GPU over time."""

from __future__ import annotations

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
