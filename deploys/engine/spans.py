"""Where the time of a run goes: stretches of time, and the commands that were sent in them.

`with span("read hosts"):` notes one; `with waiting("node gpu1 is Ready"):` one in which nothing was
to do but wait. The run's report arranges what was noted (deploys/run/report.py). All times are
seconds of `time.monotonic()`.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyinfra.api.host import Host
from pyinfra.context import ctx_host


@dataclass(eq=False)
class Span:
    """A stretch of time.

    + host: inventory name; "" for what concerns all of them
    + operation: the operation that ran when it began; "" before the first and between them
    + wait: nothing was to do in it but wait
    + commands, files: inventory name -> commands run and files copied in it, less those of spans
      within it
    """

    name: str
    host: str = ""
    operation: str = ""
    wait: bool = False
    started_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    commands: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)


def _process_start() -> float:
    """When this process began, in seconds of `time.monotonic()`; on other systems than Linux: now.

    Before any code of ours runs, Python and pyinfra have taken a large part of a short run.
    """
    now = time.monotonic()
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # starttime, see proc(5)
        return now - max(time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot, 0.0)
    except (OSError, ValueError, IndexError, AttributeError):
        return now


ORIGIN = _process_start()
recorded: list[Span] = []
# inventory name -> commands run, and files copied, in all
commands: Counter[str] = Counter()
files: Counter[str] = Counter()
# inventory name -> seconds in which at least one command ran there
busy: dict[str, float] = defaultdict(float)

_COUNTED = {"run_shell_command": "commands", "put_file": "files", "get_file": "files"}
_open: list[Span] = []
_running: Counter[str] = Counter()  # inventory name -> commands that run now
_since: dict[str, float] = {}  # inventory name -> when the first of them began


@contextmanager
def span(name: str, host: str = "", wait: bool = False) -> Iterator[Span]:
    """Note how long the block takes, and what is sent in it to which host.

    + name: what a person calls it, e.g. `compare`; + host: inventory name, "" for all
    """
    item = begin(name, host, wait=wait)
    try:
        yield item
    finally:
        end(item)


@contextmanager
def waiting(subject: str) -> Iterator[None]:
    """Note that the operation which runs on the current host only waits in this block.

    + subject: for, e.g. `2 of 3 nodes Ready`

    A command that an operation yields within it counts as waiting too. While a run is prepared
    nothing is noted: an operation is then asked for its first command, which nobody runs.
    """
    host: Host | None = ctx_host.get() if ctx_host.isset() else None  # type: ignore[no-untyped-call]
    if host is None or not host.state.is_executing:
        yield
        return
    with span(subject, host.name, wait=True):
        yield


def begin(name: str, host: str = "", operation: str = "", wait: bool = False) -> Span:
    """Begin a span that `end` ends; where it fits, `span` is safer."""
    within = operation or next((item.operation for item in reversed(_open) if item.operation), "")
    item = Span(name, host, within, wait)
    recorded.append(item)
    _open.append(item)
    return item


def end(item: Span) -> None:
    """End a span that `begin` began."""
    item.ended_at = time.monotonic()
    if item in _open:
        _open.remove(item)


def count_commands(host: Host) -> None:
    """Count what is sent through a host's connector from now on. Later calls do nothing.

    All commands of facts and operations and all copies of files pass there, however they began.
    """
    connector: Any = host.connector
    if getattr(connector, "gpuboot_counted", False):
        return
    connector.gpuboot_counted = True
    for name, counter in _COUNTED.items():
        setattr(connector, name, _counted(getattr(connector, name), host.name, counter))


def _counted(call: Callable[..., Any], host: str, counter: str) -> Callable[..., Any]:
    total = commands if counter == "commands" else files

    def counted(*arguments: Any, **keywords: Any) -> Any:
        total[host] += 1
        if (scope := _innermost(host)) is not None:
            getattr(scope, counter)[host] += 1
        if not _running[host]:
            _since[host] = time.monotonic()
        _running[host] += 1
        try:
            return call(*arguments, **keywords)
        finally:
            _running[host] -= 1
            if not _running[host]:
                busy[host] += time.monotonic() - _since[host]

    return counted


def _innermost(host: str) -> Span | None:
    """The span of a command on this host: the last that began and concerns it."""
    return next((item for item in reversed(_open) if item.host in ("", host)), None)
