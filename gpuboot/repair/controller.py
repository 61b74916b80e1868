"""Takes one step after the other, as long as there is one to take now.

It keeps nothing to itself: what it knows stands on the nodes. So another one may go on wherever it
stops, and whatever it does it asks first whether it is still as it was seen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.objects import parse_node
from gpuboot.config.settings import Settings
from gpuboot.repair import writing
from gpuboot.repair.decide import Decision, World, decide
from gpuboot.repair.observe import CONFIG_MAPS, NODES, Reader, gpu_node, observe
from gpuboot.repair.repair_model import GpuNode, Repair
from gpuboot.repair.repair_steps import Step, Work, concluded, handed_over, last, unfinished

_CONFLICT, _MISSING = 409, 404
_WRITES = 5  # tries: a kubelet writes its node's object as well
# The API server keeps Events for an hour: of older steps nobody can tell whether they were told.
_MESSAGE_WINDOW_S = 1800


class UndecidedError(Exception):
    """Work came to no verdict: what it needs does not answer, or is not allowed now."""


class Writer(Reader, Protocol):
    """What reads and changes objects: `gpuboot.cluster.api.Cluster`."""

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any: ...

    def now(self) -> datetime: ...


class Hands(Protocol):
    """What is done on nodes. Each may be done again, and raises `UndecidedError`.

    All but `hand_over` return what went wrong, or "".
    """

    def drain(self, node: str) -> str: ...

    def reset(self, node: str, gpus: tuple[str, ...]) -> str: ...

    def reboot(self, node: str) -> str: ...

    def prove(self, node: str) -> str: ...

    def hand_over(self, node: str, repair: Repair) -> str:
        """Write what a person needs; where that is, as `machine:path`."""


@dataclass
class Controller:
    """Repairs the nodes of a cluster.

    + write: takes each transition, as `writing.line` makes it
    + has_control: whether no other controller has taken over; asked before each change
    + refusal: why nothing may be done to nodes now; "" when it may. Asked once nodes are to be
      changed by more than a note
    """

    cluster: Writer
    settings: Settings
    hands: Hands
    write: Callable[[dict[str, Any]], None]
    has_control: Callable[[], bool] = lambda: True
    refusal: Callable[[], str] = lambda: ""
    _attempted: set[tuple[str, str, float]] = field(default_factory=set)

    def run(self) -> Decision:
        """Take steps until nothing more can be done now; what is left. Raises `ClusterError`.

        One node is worked on at a time. Work that failed without an end is left to the next run.
        """
        first = True
        while True:
            now = self.cluster.now().timestamp()
            world = observe(self.cluster, self.settings, now)
            decision = decide(world, now, self.settings.remediate)
            if not self.has_control():
                return decision
            if first:
                self._catch_up(world, now)
                first = False
            if decision.breaker:
                self._open(decision)
            wrote = [
                self._write(step, _node(world, step.node))
                for step in decision.steps
                if not step.leaves_service or not self.refusal()
            ]
            if any(wrote):
                continue
            open_works = [work for work in decision.works if _key(work) not in self._attempted]
            if not open_works or self.refusal():
                return decision
            self._do(open_works[0])

    def _do(self, work: Work) -> None:
        self._attempted.add(_key(work))
        conclude = self._work(work)
        if self.has_control():
            now = self.cluster.now().timestamp()
            current = gpu_node(parse_node(self.cluster.json(f"{NODES}/{work.node}")))
            if current.repair == work.repair and (step := conclude(current, now)):
                self._write(step, current)

    def _work(self, work: Work) -> Callable[[GpuNode, float], Step | None]:
        """Do the work; the step that follows from how it ended."""
        try:
            if work.job == "hand_over":
                bundle = self.hands.hand_over(work.node, work.repair)
                return lambda current, now: handed_over(current, work, bundle)
            failure = self._perform(work)
        except UndecidedError as error:
            reason = str(error)
            return lambda current, now: unfinished(current, work, reason)
        limits = self.settings.remediate
        return lambda current, now: concluded(current, work, failure, now, limits)

    def _perform(self, work: Work) -> str:
        if work.job == "reset":
            return self.hands.reset(work.node, work.repair.gpus)
        return {
            "drain": self.hands.drain,
            "reboot": self.hands.reboot,
            "prove": self.hands.prove,
        }[work.job](work.node)

    def _write(self, step: Step, observed: GpuNode) -> bool:
        """Whether the node was written: not where others changed what the step was decided by."""
        path = f"{NODES}/{step.node}"
        for attempt in range(_WRITES):
            item = self.cluster.json(path)
            desired, current = writing.patched(item, step), gpu_node(parse_node(item))
            if attempt and _decisive(current) == _decisive(gpu_node(parse_node(desired))):
                break  # the answer to an earlier try was lost
            if _decisive(current) != _decisive(observed):
                return False
            try:
                self.cluster.send("PUT", path, desired)
                break
            except ClusterError as error:
                if error.status != _CONFLICT:
                    raise
        else:
            return False
        self._report(step, self.cluster.now().timestamp())
        return True

    def _catch_up(self, world: World, now: float) -> None:
        """Report last steps that an earlier controller wrote before it was killed."""
        for node in world.nodes:
            step = last(node)
            if step is None or step.repair is None or now - step.repair.since > _MESSAGE_WINDOW_S:
                continue
            try:
                self.cluster.json(f"{writing.EVENTS}/{writing.event_name(step, now)}")
            except ClusterError as error:
                if error.status != _MISSING:
                    raise
                self._report(step, now)

    def _report(self, step: Step, now: float) -> None:
        """Write a line and an Event of a step. If it is killed in between, the line comes twice."""
        self.write(writing.line(step, now, self.settings.cluster.name))
        self._post(writing.EVENTS, writing.event(step, now))

    def _open(self, decision: Decision) -> None:
        assert decision.breaker is not None
        self._post(CONFIG_MAPS, writing.breaker(decision.breaker))

    def _post(self, path: str, body: dict[str, Any]) -> None:
        """Make an object, unless it is there already."""
        try:
            self.cluster.send("POST", path, body)
        except ClusterError as error:
            if error.status != _CONFLICT:
                raise


def _key(work: Work) -> tuple[str, str, float]:
    return work.node, work.job, work.repair.since


def _node(world: World, name: str) -> GpuNode:
    return next(node for node in world.nodes if node.name == name)


def _decisive(node: GpuNode) -> tuple[object, ...]:
    """What people and other controllers change of a node."""
    return node.repair, node.cordoned, node.tainted, node.opted_out, node.past
