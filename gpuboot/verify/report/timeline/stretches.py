"""A run as stretches of time: which host was at what, from the content of run.json.

Times are seconds since the run's process began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

START, PREPARE = "start-up", "prepare"

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """An operation on one host, or what came before the operations.

    + stage: the phase of an operation; else what is done before them, e.g. `read hosts`
    + label: name of the operation; "" before the operations
    + host: inventory name; "" where it is done on the control machine for all hosts
    + waits: when it only waited, and for what, in order
    + parts: of the proof, with their seconds
    """

    stage: str
    label: str = ""
    host: str = ""
    started: float
    finished: float
    waits: tuple[tuple[float, float, str], ...] = ()
    changed: bool = False
    parts: tuple[tuple[str, float], ...] = ()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.finished - self.started

    @property
    def waited(self) -> float:
        """Seconds of it in which it only waited."""
        return length((started, finished) for started, finished, _ in self.waits)


def before_operations(run: Mapping[str, Any]) -> list[Stretch]:
    """What came before the operations, in order; for each host where it is done on each."""
    return [
        Stretch(
            stage=span["name"],
            host=span["host"],
            started=span["begun"],
            finished=_finish_time(span, run),
            waits=((span["begun"], _finish_time(span, run), span["name"]),) if span["wait"] else (),
        )
        for span in run["spans"]
        if span["operation"] is None
    ]


def of_operations(run: Mapping[str, Any]) -> list[Stretch]:
    """Each operation on each host that it ran on, in order."""
    waits: dict[tuple[int, str], list[tuple[float, float, str]]] = {}
    for span in run["spans"]:
        if span["wait"] and span["operation"] is not None:
            wait = (span["begun"], _finish_time(span, run), span["name"])
            waits.setdefault((span["operation"], span["host"]), []).append(wait)
    return [
        Stretch(
            stage=item["phase"],
            label=item["name"],
            host=host,
            started=times["begun"],
            finished=_finish_time(times, run),
            waits=tuple(waits.get((number, host), ())),
            changed=host in item["changed"],
            parts=tuple(item.get("parts", {}).items()),
        )
        for number, item in enumerate(run["operations"])
        for host, times in item["hosts"].items()
    ]


def length(intervals: Iterable[Interval]) -> float:
    """Seconds that are in at least one of these intervals."""
    return sum(finished - started for started, finished in union(intervals))


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same moments as intervals that do not overlap, in order."""
    joined: list[Interval] = []
    for started, finished in sorted(intervals):
        if joined and started <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], finished))
        else:
            joined.append((started, finished))
    return joined


def _finish_time(item: Mapping[str, Any], run: Mapping[str, Any]) -> float:
    """The end of an item; of one that has not ended, the time at which the file was written."""
    finished: float | None = item["ended"]
    return float(run["seconds"]) if finished is None else finished
