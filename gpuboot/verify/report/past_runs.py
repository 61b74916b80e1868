"""Earlier runs in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuboot.plan.terminal_tables import table_lines

Run = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """An earlier run.

    + folder: of its report
    + commands: to all hosts together
    + changes: operations that changed something, counted on each host
    """

    folder: str
    cluster: str
    started: str
    deploy: str
    seconds: float
    commands: int
    changes: int
    exit: int


def summary(folder: Path, run: Run) -> PastRun:
    """A run in one line. + run: as its run.json has it"""
    hosts = run["hosts"].values()
    return PastRun(
        folder=folder.name,
        cluster=run["cluster"],
        started=run["started"],
        deploy=run["deploy"],
        seconds=run["seconds"],
        commands=sum(host["commands"] for host in hosts),
        changes=sum(len(host["changed"]) for host in hosts),
        exit=run["exit"],
    )


def lines(runs: Sequence[PastRun]) -> list[str]:
    """Runs as a table for a terminal, the newest first."""
    head = ("started", "deploy", "seconds", "commands", "changed", "exit", "report")
    cells = [
        (
            item.started,
            item.deploy,
            f"{item.seconds:.1f}",
            str(item.commands),
            str(item.changes),
            str(item.exit),
            item.folder,
        )
        for item in runs
    ]
    return table_lines([head, *cells], range(2, 6), indent="  ")
