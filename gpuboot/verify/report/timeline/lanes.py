"""A run as lanes of bars, for its page: time to the right, a lane for each host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuboot.verify.report.timeline.chain import control_machine, longest_chain
from gpuboot.verify.report.timeline.stretches import (
    Stretch,
    before_operations,
    of_operations,
    union,
)

MOST_LANES = 40  # of hosts; of more, those that took longest and one lane for the others
PHASES, CONTROL = "phases", "control machine"
_SMALLEST = 0.15  # percent of the run: shorter pauses are left out, so that a page stays small
_MOST_NAMES = 3


@dataclass(frozen=True)
class Bar:
    """Something that took time.

    + kind: `phase`, `work`, `changed`, `wait`, or `chain`: the run waited for this lane
    + left, width: percent of the run
    """

    kind: str
    left: float
    width: float
    title: str


@dataclass(frozen=True)
class Lane:
    """All of one host. + note: what stands beside its name"""

    name: str
    note: str
    bars: tuple[Bar, ...]


def lanes(run: Mapping[str, Any]) -> list[Lane]:
    """The phases, the control machine, then the hosts in order.

    + run: as run.json has it
    """
    stretches = [*before_operations(run), *of_operations(run)]
    chain = longest_chain(run)
    by_host: dict[str, list[Stretch]] = {host: [] for host in run["hosts"]}
    for item in stretches:
        if item.host:
            by_host.setdefault(item.host, []).append(item)
    shown_hosts = _longest(by_host, chain)
    groups = {host: [host] for host in by_host if host in shown_hosts}
    if other_hosts := [host for host in by_host if host not in shown_hosts]:
        groups[f"{len(other_hosts)} other hosts"] = other_hosts
    total = float(run["seconds"]) or 1.0
    return [
        Lane(PHASES, "", tuple(_phases(stretches, total))),
        Lane(CONTROL, "", tuple(_bars(control_machine(run), _of(chain, [""]), total))),
        *(
            Lane(
                name,
                _commands(run, hosts),
                tuple(_bars(_of(stretches, hosts), _of(chain, hosts), total)),
            )
            for name, hosts in groups.items()
        ),
    ]


def _of(stretches: Iterable[Stretch], hosts: Sequence[str]) -> list[Stretch]:
    return [item for item in stretches if item.host in hosts]


def _longest(by_host: Mapping[str, Sequence[Stretch]], chain: Iterable[Stretch]) -> set[str]:
    """Hosts with a lane of their own: those the run waited for, then those that took longest."""
    if len(by_host) <= MOST_LANES:
        return set(by_host)
    waited_for: dict[str, float] = {}
    for item in chain:
        waited_for[item.host] = waited_for.get(item.host, 0.0) + item.seconds
    seconds = {host: sum(item.seconds for item in items) for host, items in by_host.items()}
    ranked = sorted(by_host, key=lambda host: (-waited_for.get(host, 0.0), -seconds[host]))
    return set(ranked[: MOST_LANES - 1])


def _commands(run: Mapping[str, Any], hosts: Sequence[str]) -> str:
    count = sum(run["hosts"].get(host, {}).get("commands", 0) for host in hosts)
    return f"{count} {'command' if count == 1 else 'commands'}"


def _phases(stretches: Iterable[Stretch], total: float) -> Iterator[Bar]:
    """Each stage and phase from its first begin to its last end."""
    ends: dict[str, tuple[float, float]] = {}
    for item in stretches:
        started, finished = ends.get(item.stage, (item.started, item.finished))
        ends[item.stage] = min(started, item.started), max(finished, item.finished)
    for name, (started, finished) in sorted(ends.items(), key=lambda entry: entry[1]):
        yield _bar("phase", started, finished, name, total)


def _bars(items: Sequence[Stretch], chain: Iterable[Stretch], total: float) -> Iterator[Bar]:
    """Work by phase, then waits, then when the run waited for it: what comes later lies above."""
    times: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    for item in items:
        kind = "changed" if item.changed else "work"
        labelled = item.started, item.finished, item.label
        times.setdefault((kind, item.stage), []).append(labelled)
    times[("wait", "waited for")] = [wait for item in items for wait in item.waits]
    times[("chain", "the run waited for it")] = [
        (item.started, item.finished, "") for item in chain
    ]
    for (kind, stage), entries in times.items():
        for started, finished in union(
            ((begin, end) for begin, end, _ in entries), _SMALLEST / 100 * total
        ):
            names = dict.fromkeys(
                label for begin, _, label in entries if label and started <= begin <= finished
            )
            suffix = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            text = ", ".join(list(names)[:_MOST_NAMES]) + suffix
            yield _bar(kind, started, finished, f"{stage}: {text}" if text else stage, total)


def _bar(kind: str, started: float, finished: float, title: str, total: float) -> Bar:
    start_percent, end_percent = 100 * started / total, 100 * finished / total
    return Bar(
        kind,
        round(start_percent, 2),
        round(end_percent - start_percent, 2),
        f"{title} ({finished - started:.1f} s)",
    )


def ticks(run: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Percent of the run, and its time as minutes:seconds."""
    times = ((percent, round(run["seconds"] * percent / 100)) for percent in (0, 25, 50, 75, 100))
    return [(percent, f"{time // 60}:{time % 60:02}") for percent, time in times]
