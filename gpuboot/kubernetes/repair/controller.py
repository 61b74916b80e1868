"""Takes one step after the other, as long as there is one to take now.

It keeps nothing to itself: what it knows stands on the nodes. So another one may go on wherever it
stops, and whatever it does it asks first whether it is still as it was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import ClusterError
from gpuboot.kubernetes.repair import writing
from gpuboot.kubernetes.repair.decide import Decision, World, decide
from gpuboot.kubernetes.repair.model import GpuNode
from gpuboot.kubernetes.repair.observe import CONFIG_MAPS, NODES, Reader, observe, parse_node
from gpuboot.kubernetes.repair.steps import Step, Work, concluded

_CONFLICT = 409


class Writer(Reader, Protocol):
    """What reads and changes objects: `gpuboot.kubernetes.api.Cluster`."""

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any: ...

    def now(self) -> datetime: ...


class Hands(Protocol):
    """What is done on nodes. Each returns what went wrong, or ""; each may be done again."""

    def drain(self, node: str) -> str: ...

    def reset(self, node: str, gpus: tuple[str, ...]) -> str: ...

    def reboot(self, node: str) -> str: ...

    def prove(self, node: str) -> str: ...


@dataclass
class Controller:
    """Repairs the nodes of a cluster.

    + tell: takes each transition, as `writing.line` makes it
    + mine: whether no other controller has taken over; asked before each change
    """

    cluster: Writer
    settings: Settings
    hands: Hands
    tell: Callable[[dict[str, Any]], None]
    mine: Callable[[], bool] = lambda: True
    _tried: set[tuple[str, str, float]] = field(default_factory=set)
    _events: int = 0

    def run(self) -> Decision:
        """Until nothing more can be done now; what is left then. Raises `ClusterError`.

        One node is worked on at a time. Work that failed without an end is left to the next run.
        """
        while True:
            now = self.cluster.now().timestamp()
            world = observe(self.cluster, self.settings, now)
            decision = decide(world, now, self.settings.remediate)
            if not self.mine():
                return decision
            if decision.breaker:
                self._open(decision)
            wrote = [self._write(step, _node(world, step.node)) for step in decision.steps]
            if any(wrote):
                continue
            left = [work for work in decision.works if _key(work) not in self._tried]
            if not left:
                return decision
            self._do(left[0], _node(world, left[0].node))

    def _do(self, work: Work, node: GpuNode) -> None:
        self._tried.add(_key(work))
        failure = self._work(work)
        if self.mine():
            now = self.cluster.now().timestamp()
            found = parse_node(self.cluster.json(f"{NODES}/{work.node}"))
            if found.repair == work.repair:
                limits = self.settings.remediate
                self._write(concluded(found, work, failure, now, limits), found)

    def _work(self, work: Work) -> str:
        if work.job == "reset":
            return self.hands.reset(work.node, work.repair.gpus)
        return {
            "drain": self.hands.drain,
            "reboot": self.hands.reboot,
            "prove": self.hands.prove,
        }[work.job](work.node)

    def _write(self, step: Step, seen: GpuNode) -> bool:
        """Whether the step was taken: nobody has changed what it was decided by."""
        path = f"{NODES}/{step.node}"
        item = self.cluster.json(path)
        if _decisive(parse_node(item)) != _decisive(seen):
            return False
        try:
            self.cluster.send("PUT", path, writing.patched(item, step))
        except ClusterError as error:
            if error.status == _CONFLICT:
                return False
            raise
        now = self.cluster.now().timestamp()
        self.tell(writing.line(step, now, self.settings.cluster.name))
        self._events += 1
        self.cluster.send("POST", writing.EVENTS, writing.event(step, now, self._events))
        return True

    def _open(self, decision: Decision) -> None:
        assert decision.breaker is not None
        try:
            self.cluster.send("POST", CONFIG_MAPS, writing.breaker(decision.breaker))
        except ClusterError as error:
            if error.status != _CONFLICT:  # open already
                raise


def _key(work: Work) -> tuple[str, str, float]:
    return work.node, work.job, work.repair.since


def _node(world: World, name: str) -> GpuNode:
    return next(node for node in world.nodes if node.name == name)


def _decisive(node: GpuNode) -> tuple[object, ...]:
    """What people and other controllers change of a node."""
    return node.repair, node.cordoned, node.tainted, node.opted_out, node.past
