"""Operations of all hosts in the order of the deploy.

pyinfra orders operations of different hosts by those they share, and a run leaves out what has
nothing to do: two hosts may then share none, and a worker would join before there is a cluster.
What pyinfra computes slowly for each operation is computed here fast: docs/upstream.md.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from typing import Any

import pyinfra
from pyinfra.api import arguments
from pyinfra.api.state import State
from pyinfra.api.util import PYINFRA_INSTALL_DIR

# pyinfra.api has a function of the same name
_operation_module: Any = import_module("pyinfra.api.operation")
_all_global_arguments = cache(arguments.all_global_arguments)


def install(state: State) -> None:
    """Have a run execute its operations as they stand in the deploy, line by line."""
    state.get_op_order = lambda: merged(  # type: ignore[method-assign]
        (host.op_hash_order for host in state.inventory),
        {op_hash: meta.op_order for op_hash, meta in state.op_meta.items()},
    )
    # a third of the CPU time of a first run's plan
    _operation_module.get_operation_order_from_stack = call_lines
    arguments.all_global_arguments = _all_global_arguments


def call_lines(state: State) -> list[int]:
    """Lines of the deploy and of what it calls, down to the current operation."""
    frames = []
    frame = sys._getframe(1)
    while frame:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    frames.reverse()
    files = [frame.f_code.co_filename for frame in frames]
    first = 0
    if deploy := state.current_deploy_filename:
        first = files.index(deploy) if deploy in files else len(files)
    lines = [state.current_op_file_number] if pyinfra.is_cli else []
    return lines + [
        frame.f_lineno
        for frame, file in zip(frames[first:], files[first:], strict=True)
        if not file.startswith(PYINFRA_INSTALL_DIR)
    ]


def merged(hosts: Iterable[Sequence[str]], lines: Mapping[str, Any]) -> list[str]:
    """The operations of all hosts in one order, which keeps that of each host.

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
