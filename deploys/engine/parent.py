"""Whether a deploy that a command started is to end: by a signal, or with that command."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gevent
from gevent.event import Event


@contextmanager
def end_requested(parent: int) -> Iterator[Callable[[], bool]]:
    """Whether it is to end now, as a function.

    + parent: number of the process with whose end it ends
    """
    stop_requested = Event()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    watchers = [gevent.signal_handler(number, stop_requested.set) for number in signals]
    try:
        yield lambda: bool(stop_requested.is_set()) or os.getppid() != parent
    finally:
        for watcher in watchers:
            watcher.cancel()
