"""Earlier runs in one line each, and the newest compared with one that did the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuboot.plan.history import changed_operations
from gpuboot.plan.tables import table_lines
from gpuboot.verify.report.timeline.table import Row, Share, rows

Run = Mapping[str, Any]
ALL = "the whole run"


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """One run.

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


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One phase, or what comes before the phases, in two runs; None where one did not have it."""

    name: str
    seconds: float | None
    before: float | None
    commands: int | None
    commands_before: int | None

    @property
    def increase(self) -> float | None:
        """Seconds that it took longer than before; None where there is nothing to compare."""
        if self.seconds is None or self.before is None:
            return None
        return round(self.seconds - self.before, 3)


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


def same_kind(run: Run, candidates: Iterable[tuple[Path, Run]]) -> tuple[Path, Run] | None:
    """The first of other runs that did the same.

    That is: by the same deploy, on the same hosts of the same cluster, it changed the same
    operations and ended the same way. Versions in their names make no difference.
    """
    return next((item for item in candidates if _kind(item[1]) == _kind(run)), None)


def differences(run: Run, before: Run) -> list[Difference]:
    """Where a run took longer or shorter than another one, in the order of the run."""
    run_rows, past_rows = _rows(run), _rows(before)
    names = _merged(run_rows, past_rows)
    return [_difference(name, run_rows.get(name), past_rows.get(name)) for name in names]


def _rows(run: Run) -> dict[str, Row]:
    commands = {host: Share(commands=data["commands"]) for host, data in run["hosts"].items()}
    total = Row(name=ALL, seconds=run["seconds"], hosts=commands)
    return {row.name: row for row in (*rows(run), total)}


def _merged(run_names: Iterable[str], past_names: Iterable[str]) -> list[str]:
    """The names of both, in the order of both."""
    names, place = list(run_names), 0
    for name in past_names:
        if name not in names:
            names.insert(place, name)
        place = names.index(name) + 1
    return names


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


def difference_lines(compared: Iterable[Difference]) -> list[str]:
    """Differences as a table for a terminal."""
    head = ("", "seconds", "before", "more", "commands", "before")
    cells = [
        (
            item.name,
            _seconds(item.seconds),
            _seconds(item.before),
            "" if item.increase is None else f"{item.increase:+.1f}",
            _count(item.commands),
            _count(item.commands_before),
        )
        for item in compared
    ]
    return table_lines([head, *cells], range(1, 6), indent="  ")


def to_json(runs: Sequence[PastRun], against: str, compared: Iterable[Difference]) -> Any:
    """All of it for programs. + against: folder of the run that the newest is compared with"""
    return {
        "runs": [asdict(item) for item in runs],
        "against": against or None,
        "phases": [{**asdict(item), "more": item.increase} for item in compared],
    }


def _kind(run: Run) -> tuple[Any, ...]:
    return run["cluster"], run["deploy"], sorted(run["hosts"]), run["exit"], changed_operations(run)


def _difference(name: str, row: Row | None, past_row: Row | None) -> Difference:
    return Difference(
        name=name,
        seconds=round(row.seconds, 3) if row else None,
        before=round(past_row.seconds, 3) if past_row else None,
        commands=row.commands if row else None,
        commands_before=past_row.commands if past_row else None,
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _count(value: int | None) -> str:
    return str(value or "")
