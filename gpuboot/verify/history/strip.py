"""The history of GPUs as strips: a line of time for each GPU, coloured by what was known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from gpuboot.verify.history.events import Event, History
from gpuboot.verify.report.strips import Mark, Stretch, Strip, Strips

_TICKS = 4  # parts of the axis, where it is longer than as many days
_NOW = 0.5  # percent of the axis: the least that is seen of what is wrong now
_STATUS = {"proven": "pass", "failed": "fail", "gone": "gone"}  # others: not proven from then on
_WORDS = {
    "not_covered": "not proven",
    "pass": "proven; no later verification found a fault",
    "fail": "failed",
    "gone": "not in its node",
}


class _Axis:
    def __init__(self, begin: str, end: str) -> None:
        self.begin, self.end = datetime.fromisoformat(begin), datetime.fromisoformat(end)
        self.duration = self.end - self.begin

    def place(self, at: str) -> float:
        share = (datetime.fromisoformat(at) - self.begin) / self.duration
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        if self.duration <= timedelta(days=_TICKS):
            return (0.0, f"{self.begin:%m-%d %H:%M}"), (100.0, f"{self.end:%m-%d %H:%M}")
        shares = [step / _TICKS for step in range(_TICKS + 1)]
        return tuple(
            (100 * share, f"{self.begin + self.duration * share:%Y-%m-%d}") for share in shares
        )


def strips(histories: Mapping[str, History], cluster: str, now: str) -> Strips:
    """The strips of a cluster's GPUs, those to which something happened first.

    + histories: every GPU's history, by UUID
    + now: where the axis ends: UTC, ISO 8601; what came later is left out

    Empty where all began now: one moment has no history.
    """
    until_now = (_until(history, now) for history in histories.values())
    cluster_histories = [
        history for history in until_now if history.events and history.place[0] == cluster
    ]
    begin = min((history.events[0].at for history in cluster_histories), default=now)
    if begin >= now:
        return Strips()
    axis = _Axis(begin, now)
    cluster_strips = (_strip(history, axis, now) for history in cluster_histories)
    return Strips(
        axis.ticks(),
        tuple(
            sorted(cluster_strips, key=lambda strip: (not strip.eventful, strip.node, strip.pci))
        ),
    )


def _until(history: History, now: str) -> History:
    return replace(history, events=tuple(event for event in history.events if event.at <= now))


def _strip(history: History, axis: _Axis, now: str) -> Strip:
    stretches = tuple(_stretches(history.events, axis, now))
    marks = tuple(
        Mark(axis.place(event.at), f"{event.at[:10]}: {event.kind} {event.detail}".rstrip())
        for event in history.events
        if event.kind in ("moved", "back") or (event.kind == "first seen" and event.detail)
    )
    _, node, pci = history.place
    return Strip(
        history.uuid,
        history.name,
        node,
        pci,
        history.count("failed"),
        stretches,
        marks,
        eventful=bool(marks) or any(event.kind in ("failed", "gone") for event in history.events),
    )


def _stretches(events: Iterable[Event], axis: _Axis, now: str) -> Iterable[Stretch]:
    states = [
        (
            event.at,
            _STATUS.get(event.kind, "not_covered"),
            event.detail if event.kind == "failed" else "",
        )
        for event in events
    ]
    states.append((now, "", ""))
    for (since, status, text), (until, _, _) in pairwise(states):
        left_x, right = axis.place(since), axis.place(until)
        if until == now and status in ("fail", "gone"):
            left_x = min(left_x, right - _NOW)
        if right > left_x:
            description = f"{_WORDS[status]}{f': {text}' if text else ''}"
            yield Stretch(
                status,
                left_x,
                round(right - left_x, 2),
                f"{since[:10]} to {until[:10]}: {description}",
            )
