"""Sets the host that pyinfra's facts and commands are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyinfra.api.host import Host
from pyinfra.context import ContextObject, ctx_host


@contextmanager
def current_host(target: Host) -> Iterator[Host]:
    """Make a host the current one in the block, also `pyinfra.host`, a proxy of the current one.

    pyinfra's own `ctx_host.use` recurses for the latter, and does not come back after an exception.
    """
    before: Host | None = ctx_host.get()  # type: ignore[no-untyped-call]
    current = target if before is None or not isinstance(target, ContextObject) else before
    ctx_host.set(current)  # type: ignore[no-untyped-call]
    try:
        yield current
    finally:
        ctx_host.set(before)  # type: ignore[no-untyped-call]
