"""Drains that a run is going to make, as its operations tell while they are compared.

Preflight rehearses all of them before anything changes (`deploys/phases/drains.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deploys.engine import answers
from gpuboot.cluster.drain_rehearsal import PlannedDrain

_MOVES = "its pods are moved to other nodes, as PodDisruptionBudgets allow"
# by node: pods that could not leave it when the drains were rehearsed, each with why
held_up: dict[str, Sequence[str]] = {}
# nodes that come to share their GPUs otherwise while they are away for their upgrade
sharing: set[str] = set()


def note_drain(node: str, host: str, moved: Mapping[str, Any], shares: bool = False) -> None:
    """The operation that is compared drains this node.

    + node: its name in Kubernetes; host: its inventory name
    + moved: arguments of `deploys.parts.cluster.node_drain.drain`; nothing: it is not drained
    + shares: it is upgraded, and could come to share its GPUs otherwise in the same stay
    """
    if moved and (step := answers.compared_step()):
        step.drains[node] = PlannedDrain(host=host, shares=shares, **moved)


def note_of(node: str) -> str:
    """What becomes of a node's pods, as a plan tells it."""
    obstacles = held_up.get(node, ())
    return f"{_MOVES}; now {'; '.join(obstacles)}" if obstacles else _MOVES
