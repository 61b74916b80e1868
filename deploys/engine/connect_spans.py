"""Notes how long connecting to each host takes, and counts what is sent to it from then on.

Hosts that no connection can be made to are noted too.
"""

from __future__ import annotations

from typing import Any

from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State

from deploys.engine import spans
from deploys.engine.connections import note_unreachable
from deploys.engine.spans import Span


class Connections(BaseStateCallback):
    """Notes a span for each connection, in the run as well where a host has rebooted."""

    def __init__(self) -> None:
        self.trying: dict[str, Span] = {}  # inventory name -> the attempt that goes on

    def host_before_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        spans.count_commands(host)
        self._end(host)  # an attempt that ended in an exception is told nobody
        self.trying[host.name] = spans.begin("connect", host.name)

    def host_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        self._end(host)

    def host_connect_error(self, state: State, host: Host, error: Any) -> None:  # type: ignore[override]
        self._end(host)

    def _end(self, host: Host) -> None:
        if (attempt := self.trying.pop(host.name, None)) is not None:
            spans.end(attempt)


class UnreachableHosts(BaseStateCallback):
    """Notes each host that no connection can be made to."""

    @staticmethod
    def host_connect_error(state: State, host: Host, error: Any) -> None:
        note_unreachable(host.name, error)
