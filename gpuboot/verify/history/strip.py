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
        self.whole = self.end - self.begin

    def place(self, at: str) -> float:
        share = (datetime.fromisoformat(at) - self.begin) / self.whole
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        if self.whole <= timedelta(days=_TICKS):
            return (0.0, f"{self.begin:%m-%d %H:%M}"), (100.0, f"{self.end:%m-%d %H:%M}")
        shares = [step / _TICKS for step in range(_TICKS + 1)]
        return tuple((100 * it, f"{self.begin + self.whole * it:%Y-%m-%d}") for it in shares)


def strips(known: Mapping[str, History], cluster: str, now: str) -> Strips:
    """The strips of a cluster's GPUs, those to which something happened first.

    + known: every GPU's history, by UUID
    + now: where the axis ends: UTC, ISO 8601; what came later is left out

    Empty where all began now: one moment has no history.
    """
    until_now = (_until(one, now) for one in known.values())
    here = [one for one in until_now if one.events and one.place[0] == cluster]
    begin = min((one.events[0].at for one in here), default=now)
    if begin >= now:
        return Strips()
    axis = _Axis(begin, now)
    made = (_strip(one, axis, now) for one in here)
    return Strips(
        axis.ticks(), tuple(sorted(made, key=lambda it: (not it.eventful, it.node, it.pci)))
    )


def _until(history: History, now: str) -> History:
    return replace(history, events=tuple(one for one in history.events if one.at <= now))


def _strip(history: History, axis: _Axis, now: str) -> Strip:
    stretches = tuple(_stretches(history.events, axis, now))
    marks = tuple(
        Mark(axis.place(one.at), f"{one.at[:10]}: {one.kind} {one.detail}".rstrip())
        for one in history.events
        if one.kind in ("moved", "back") or (one.kind == "first seen" and one.detail)
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
        eventful=bool(marks) or any(one.kind in ("failed", "gone") for one in history.events),
    )


def _stretches(events: Iterable[Event], axis: _Axis, now: str) -> Iterable[Stretch]:
    states = [
        (one.at, _STATUS.get(one.kind, "not_covered"), one.detail if one.kind == "failed" else "")
        for one in events
    ]
    states.append((now, "", ""))
    for (since, status, text), (until, _, _) in pairwise(states):
        left, right = axis.place(since), axis.place(until)
        if until == now and status in ("fail", "gone"):
            left = min(left, right - _NOW)
        if right > left:
            what = f"{_WORDS[status]}{f': {text}' if text else ''}"
            yield Stretch(
                status, left, round(right - left, 2), f"{since[:10]} to {until[:10]}: {what}"
            )
