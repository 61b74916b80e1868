"""Earlier runs in one line each, and the newest compared with one that did the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuboot.plan.history import changed_operations
from gpuboot.plan.tables import table_lines
from gpuboot.verify.report.timeline.stretches import timed
from gpuboot.verify.report.timeline.table import Row, Share, rows

Run = Mapping[str, Any]
ALL = "the whole run"


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """One run.

    + folder: of its report
    + commands: to all hosts together; None: its file is too old to say
    + changes: operations that changed something, counted on each host
    """

    folder: str
    cluster: str
    started: str
    deploy: str
    seconds: float
    commands: int | None
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
        deploy=_deploy(run),
        seconds=run["seconds"],
        commands=sum(host["commands"] for host in hosts) if timed(run) else None,
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
    """Where a run took longer or shorter than another one, in the order of the run.

    What a file of schema 1 does not tell is left out of both.
    """
    now, earlier = {row.name: row for row in rows(run)}, {row.name: row for row in rows(before)}
    has_commands = timed(run) and timed(before)
    if has_commands:
        now[ALL] = Row(name=ALL, seconds=run["seconds"], hosts=_shares_by_host(run))
        earlier[ALL] = Row(name=ALL, seconds=before["seconds"], hosts=_shares_by_host(before))
    else:
        now, earlier = _only_phases(now), _only_phases(earlier)
    return [
        _difference(name, now.get(name), earlier.get(name), has_commands)
        for name in _merged(now, earlier)
    ]


def _merged(now: Iterable[str], earlier: Iterable[str]) -> list[str]:
    """The names of both, in the order of both."""
    names, place = list(now), 0
    for name in earlier:
        if name not in names:
            names.insert(place, name)
        place = names.index(name) + 1
    return names


def _shares_by_host(run: Run) -> dict[str, Share]:
    return {host: Share(commands=data["commands"]) for host, data in run["hosts"].items()}


def lines(runs: Sequence[PastRun]) -> list[str]:
    """Runs as a table for a terminal, the newest first."""
    head = ("started", "deploy", "seconds", "commands", "changed", "exit", "report")
    cells = [
        (
            item.started,
            item.deploy,
            f"{item.seconds:.1f}",
            "?" if item.commands is None else str(item.commands),
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


def _deploy(run: Run) -> str:
    """The deploy file; schema 1 did not tell, but a proof alone has one phase."""
    if run.get("deploy"):
        return str(run["deploy"])
    return "verify.py" if [item["name"] for item in run["phases"]] == ["Verify"] else "site.py"


def _kind(run: Run) -> tuple[Any, ...]:
    return run["cluster"], _deploy(run), sorted(run["hosts"]), run["exit"], changed_operations(run)


def _only_phases(by_name: Mapping[str, Row]) -> dict[str, Row]:
    return {name: row for name, row in by_name.items() if row.operations}


def _difference(name: str, now: Row | None, earlier: Row | None, has_commands: bool) -> Difference:
    """+ has_commands: whether both runs tell of commands"""
    return Difference(
        name=name,
        seconds=round(now.seconds, 3) if now else None,
        before=round(earlier.seconds, 3) if earlier else None,
        commands=now.commands if now and has_commands else None,
        commands_before=earlier.commands if earlier and has_commands else None,
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _count(value: int | None) -> str:
    return str(value or "")
