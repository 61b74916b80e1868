"""Operations that only so many hosts may be in at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gevent.lock import BoundedSemaphore
from pyinfra.context import host

from deploys.engine.spans import waiting

# by operation
_turns: dict[str, BoundedSemaphore] = {}


@contextmanager
def turn_of(max_hosts: int) -> Iterator[None]:
    """Let only so many hosts at a time into the block; others wait before it.

    pyinfra's `_parallel` divides all hosts of the run into lots, whether they have anything to do
    or not: most of a lot may have nothing to do, and the next lot waits all the same.
    """
    if not host.state.is_executing:
        yield
        return
    turns = _turns.setdefault(host.executing_op_hash or "", BoundedSemaphore(max_hosts))
    with waiting("its turn"):
        turns.acquire()
    try:
        yield
    finally:
        turns.release()
