"""Asks many at once, so that one that keeps silent does not add its time-out to another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_AT_ONCE = 8


def concurrently(calls: Iterable[Callable[[], T]]) -> list[T]:
    """What each of these returns, in order. Raises what the first of them raises.

    Threads: under gevent's monkey patching they are greenlets.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda call: call(), calls))
