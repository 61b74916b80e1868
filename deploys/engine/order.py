"""Operations of all hosts in the order of the deploy.

pyinfra orders operations of different hosts by those they share, and a run leaves out what has
nothing to do: two hosts may then share none, and a worker would join before there is a cluster.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from pyinfra.api.state import State


def install(state: State) -> None:
    """Have a run execute its operations as they stand in the deploy, line by line."""
    state.get_op_order = lambda: merged(  # type: ignore[method-assign]
        (host.op_hash_order for host in state.inventory),
        {op_hash: meta.op_order for op_hash, meta in state.op_meta.items()},
    )


def merged(hosts: Iterable[Sequence[str]], lines: Mapping[str, Any]) -> list[str]:
    """All operations in one order, which keeps that of each host.

    + hosts: the operations of each host, in order
    + lines: operation -> the lines of the deploy from which it is called; where hosts leave a
      choice, what stands first comes first

    Raises `graphlib.CycleError` where two hosts contradict each other.
    """
    graph: TopologicalSorter[str] = TopologicalSorter()
    for operations in hosts:
        for before, item in zip([None, *operations], operations, strict=False):
            graph.add(item, *([before] if before else []))
    graph.prepare()
    ready: list[tuple[Any, str]] = []
    order: list[str] = []
    while graph.is_active():
        for item in graph.get_ready():
            heapq.heappush(ready, (lines[item], item))
        _, first = heapq.heappop(ready)
        order.append(first)
        graph.done(first)
    return order
