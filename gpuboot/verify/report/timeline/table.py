"""Where the time of a run went, per stage or phase and host, and as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuboot.plan.terminal_tables import table_lines
from gpuboot.verify.report.timeline.stretches import (
    PREPARE,
    Stretch,
    before_operations,
    length,
    of_operations,
)


@dataclass(frozen=True, kw_only=True)
class Share:
    """The part of a row on one host. + changes: operations that changed something there"""

    seconds: float = 0.0
    waited: float = 0.0
    commands: int = 0
    changes: int = 0


@dataclass(frozen=True, kw_only=True)
class Row:
    """A phase, or what comes before the phases.

    + seconds: of the run; hosts work at the same time, so their shares do not add up to it
    + operations: 0 for what is no phase
    + hosts: inventory name -> its share, of those that took part
    """

    name: str
    seconds: float
    waited: float = 0.0
    operations: int = 0
    hosts: Mapping[str, Share] = field(default_factory=dict)

    @property
    def commands(self) -> int:
        """Commands sent to all hosts together."""
        return sum(share.commands for share in self.hosts.values())

    @property
    def changes(self) -> int:
        """Operations that changed something, counted on each host."""
        return sum(share.changes for share in self.hosts.values())

    @property
    def slowest(self) -> str:
        """The host that took longest; "" where no host took part."""
        hosts = [name for name, share in self.hosts.items() if share.seconds > 0]
        return max(hosts, key=lambda name: self.hosts[name].seconds, default="")


def rows(run: Mapping[str, Any]) -> list[Row]:
    """What came before the operations, then each phase, in order.

    + run: as run.json has it
    """
    return [*_stages(before_operations(run), run), *_phases(of_operations(run), run)]


def phases_json(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The phases as run.json has them.

    + run: its `operations` and `spans`
    """
    return [
        {
            "name": row.name,
            "operations": row.operations,
            "seconds": round(row.seconds, 3),
            "waited": round(row.waited, 3),
            "commands": row.commands,
            "changes": row.changes,
            "hosts": {
                host: {
                    "seconds": round(share.seconds, 3),
                    "waited": round(share.waited, 3),
                    "commands": share.commands,
                    "changes": share.changes,
                }
                for host, share in row.hosts.items()
            },
        }
        for row in _phases(of_operations(run), run)
    ]


def _stages(stretches: list[Stretch], run: Mapping[str, Any]) -> list[Row]:
    """Rows before the phases; the time of `prepare` leaves out what else happened within it."""
    stage_rows = []
    for name, stage_stretches in _grouped(stretches).items():
        seconds = length((item.started, item.finished) for item in stage_stretches)
        if name == PREPARE:
            started, finished = stage_stretches[0].started, stage_stretches[0].finished
            within = [item for item in stretches if item.stage != name and item.started >= started]
            seconds -= length((item.started, min(item.finished, finished)) for item in within)
        commands = _commands_by_host(span for span in run["spans"] if _is_stage(span, name))
        waited = length((a, b) for item in stage_stretches for a, b, _ in item.waits)
        row = Row(
            name=name, seconds=seconds, waited=waited, hosts=_shares(stage_stretches, commands)
        )
        stage_rows.append(row)
    return stage_rows


def _is_stage(span: Mapping[str, Any], name: str) -> bool:
    return span["operation"] is None and span["name"] == name


def _phases(stretches: list[Stretch], run: Mapping[str, Any]) -> list[Row]:
    operations: dict[str, list[Mapping[str, Any]]] = {}
    for item in run["operations"]:
        operations.setdefault(item["phase"], []).append(item)
    by_phase = _grouped(stretches)
    return [
        Row(
            name=name,
            seconds=sum(item["seconds"] for item in phase_operations),
            waited=length((a, b) for item in by_phase.get(name, ()) for a, b, _ in item.waits),
            operations=len(phase_operations),
            hosts=_shares(by_phase.get(name, ()), _commands_by_host(phase_operations)),
        )
        for name, phase_operations in operations.items()
    ]


def _grouped(stretches: Iterable[Stretch]) -> dict[str, list[Stretch]]:
    groups: dict[str, list[Stretch]] = {}
    for item in stretches:
        groups.setdefault(item.stage, []).append(item)
    return groups


def _commands_by_host(items: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Number of commands to each host, those for operations of other hosts included."""
    commands: Counter[str] = Counter()
    for item in items:
        commands.update(item["commands"])
    return commands


def _shares(stretches: Iterable[Stretch], commands: Mapping[str, int]) -> dict[str, Share]:
    by_host: dict[str, list[Stretch]] = {host: [] for host in commands}
    for item in stretches:
        if item.host:
            by_host.setdefault(item.host, []).append(item)
    return {
        host: Share(
            seconds=length((item.started, item.finished) for item in host_operations),
            waited=length((a, b) for item in host_operations for a, b, _ in item.waits),
            commands=commands.get(host, 0),
            changes=sum(item.changed for item in host_operations),
        )
        for host, host_operations in by_host.items()
    }


_SHORTEST_S = 0.05  # of a row that is told


def lines(run: Mapping[str, Any]) -> Iterator[str]:
    """A table: phase, seconds, seconds waited, commands, changes, and the host that took longest.

    + run: as run.json has it
    """
    shown_rows = [row for row in rows(run) if row.seconds >= _SHORTEST_S]
    yield "where the time went:"
    head = ("", "seconds", "waited", "commands", "changed", "slowest host")
    yield from table_lines([head, *map(_cells, shown_rows)], range(1, 5), indent="  ")


def longest(run: Mapping[str, Any], limit: int = 3) -> str:
    """The rows that took longest, in one line: `Verify 8.9 s, Kubernetes 5.8 s`."""
    slowest = sorted(rows(run), key=lambda row: -row.seconds)[:limit]
    return ", ".join(f"{row.name} {row.seconds:.1f} s" for row in slowest)


def _cells(row: Row) -> tuple[str, ...]:
    share = row.hosts.get(row.slowest)
    return (
        row.name,
        f"{row.seconds:.1f}",
        f"{row.waited:.1f}" if row.waited >= _SHORTEST_S else "",
        str(row.commands or ""),
        str(row.changes or ""),
        f"{row.slowest} {share.seconds:.1f} s" if share else "",
    )
