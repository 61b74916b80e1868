"""What run.json says about time and commands, from the spans that were noted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from deploys.engine import spans
from deploys.engine.spans import Span

deploy = ""  # names of the deploy files that the run was started with; "" where nobody told

_preparing: Span | None = None


@dataclass
class Operation:
    """An operation that has begun: its phase is the first part of its name.

    + hosts: inventory name -> when it began there and ended there, None while it runs
    """

    phase: str
    name: str
    span: Span
    hosts: dict[str, tuple[float, float | None]] = field(default_factory=dict)

    def begin_on(self, host: str) -> None:
        """Note that it begins on a host."""
        self.hosts[host] = (time.monotonic(), None)

    def end_on(self, host: str) -> None:
        """Note that it has ended on a host, in success or failure."""
        if host in self.hosts:
            self.hosts[host] = (self.hosts[host][0], time.monotonic())

    @property
    def has_ended(self) -> bool:
        """Whether it has ended on all hosts."""
        return self.span.ended_at is not None


def started() -> datetime:
    """When this run's process began."""
    return datetime.now(UTC) - timedelta(seconds=time.monotonic() - spans.ORIGIN)


def elapsed(moment: float | None = None) -> float:
    """Seconds from the beginning of the run's process to a moment, by default to now."""
    now = time.monotonic() if moment is None else moment
    return round(now - spans.ORIGIN, 3)


def operation_json(op_hash: str, item: Operation) -> dict[str, Any]:
    """When an operation ran, on which host how long, and what was sent to each host for it."""
    commands, files = totals(span for span in spans.recorded if span.operation == op_hash)
    return {
        "phase": item.phase,
        "name": item.name,
        **_times(item.span.started_at, item.span.ended_at),
        "seconds": round((item.span.ended_at or time.monotonic()) - item.span.started_at, 3),
        "hosts": {host: _times(*moments) for host, moments in item.hosts.items()},
        "commands": dict(commands),
        "files": dict(files),
    }


def spans_json(operations: Mapping[str, Operation]) -> list[dict[str, Any]]:
    """Every span but the operations' own, in the order in which they began."""
    numbers = {op_hash: number for number, op_hash in enumerate(operations)}
    operation_spans = {id(item.span) for item in operations.values()}
    return [
        {
            "name": span.name,
            "host": span.host,
            **_times(span.started_at, span.ended_at),
            "wait": span.wait,
            "operation": numbers.get(span.operation),
            "commands": dict(span.commands),
        }
        for span in spans.recorded
        if id(span) not in operation_spans
    ]


def prepare() -> None:
    """Begin the span of pyinfra's preparing, unless it has begun: no callback tells of it."""
    global _preparing
    if _preparing is None:
        started_at = min((span.started_at for span in spans.recorded), default=time.monotonic())
        spans.recorded.insert(0, Span("start-up", started_at=spans.ORIGIN, ended_at=started_at))
        _preparing = spans.begin("prepare")


def prepared() -> None:
    """End the span of `prepare`: the first operation begins."""
    if _preparing is not None and _preparing.ended_at is None:
        spans.end(_preparing)


def totals(counted_spans: Iterable[Span]) -> tuple[Counter[str], Counter[str]]:
    """Inventory name -> commands, and files, of these spans together."""
    commands, files = Counter[str](), Counter[str]()
    for span in counted_spans:
        commands.update(span.commands)
        files.update(span.files)
    return commands, files


def _times(started_at: float, ended_at: float | None) -> dict[str, float | None]:
    return {"begun": elapsed(started_at), "ended": None if ended_at is None else elapsed(ended_at)}
