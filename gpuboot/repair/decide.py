"""The next step of each node: what is written down, what is to be done, and why nothing is.

Each step is written on the node before the next begins, and each piece of work may be done again.
So a run that was killed is continued by the next one, wherever it stopped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuboot.config.settings.remediate import Remediate
from gpuboot.repair import rails
from gpuboot.repair.repair_model import EMPTIED, OUT, Breaker, GpuNode, Repair, State, stamp
from gpuboot.repair.repair_steps import (
    HeldNode,
    Job,
    Step,
    Work,
    cancelled,
    cleared,
    hold,
    moved,
    of_case,
    step,
    to,
)
from gpuboot.repair.signals import Case, Ignored, Signal, case_of, of_node, stronger

_CLOSED = Breaker()
# alerts of what was repaired end by and by
_SETTLE_S = 600


@dataclass(frozen=True, kw_only=True)
class World:
    """What was seen of a cluster.

    + signals, ignored: of firing alerts; what nodes tell by themselves is added to them
    + stale: why what Prometheus says cannot be trusted; "" when it can
    + stopped: why a person has stopped all repairs; "" when nobody has
    """

    nodes: tuple[GpuNode, ...] = ()
    signals: tuple[Signal, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    breaker: Breaker = _CLOSED
    stale: str = ""
    stopped: str = ""

    def case(self, node: GpuNode) -> Case | None:
        """What is known of a node."""
        node_signals = [signal for signal in self.signals if signal.node == node.name]
        return case_of([*node_signals, *filter(None, [of_node(node)])])


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What comes next. + stopped: why nothing at all is done; breaker: where it opens now"""

    steps: tuple[Step, ...] = ()
    works: tuple[Work, ...] = ()
    held_nodes: tuple[HeldNode, ...] = ()
    stopped: str = ""
    breaker: Breaker | None = None


Next = Step | Work | HeldNode | None


@dataclass
class _Round:
    """A decision, in which one node after the other leaves service."""

    world: World
    now: float
    limits: Remediate
    breaker: Breaker
    fleet: rails.Fleet


def decide(world: World, now: float, limits: Remediate) -> Decision:
    """The next step of each node.

    + now: seconds since 1970, by the API server's clock; limits: `settings.remediate`

    Nodes whose repair has begun come first, then those that have waited longest.
    """
    if world.stopped:
        held_nodes = [hold(node, case, [world.stopped]) for node, case in _known_cases(world)]
        return Decision(stopped=world.stopped, held_nodes=tuple(held_nodes))
    if world.stale:
        return _blind(world, now, limits)
    breaker = rails.opened(world.nodes, _newly_affected(world), world.breaker, now, limits)
    turn = _Round(world, now, limits, breaker or world.breaker, rails.Fleet.of(world.nodes))
    next_steps = [_next(node, turn) for node in sorted(world.nodes, key=_order)]
    return _sorted(next_steps, breaker=breaker)


def _blind(world: World, now: float, limits: Remediate) -> Decision:
    """The decision without Prometheus: begun repairs go on, as its volume may be on such a node."""
    turn = _Round(world, now, limits, world.breaker, rails.Fleet.of(world.nodes))
    next_steps = [_next(node, turn) for node in world.nodes if node.state in EMPTIED]
    held_nodes = [
        hold(node, case, [world.stale])
        for node, case in _known_cases(world)
        if node.state not in EMPTIED
    ]
    return _sorted([*next_steps, *held_nodes], stopped=world.stale)


def _sorted(
    next_steps: Sequence[Next], stopped: str = "", breaker: Breaker | None = None
) -> Decision:
    return Decision(
        steps=tuple(entry for entry in next_steps if isinstance(entry, Step)),
        works=tuple(entry for entry in next_steps if isinstance(entry, Work)),
        held_nodes=tuple(entry for entry in next_steps if isinstance(entry, HeldNode)),
        stopped=stopped,
        breaker=breaker,
    )


def _newly_affected(world: World) -> frozenset[str]:
    """Nodes that ask for a repair and are not marked yet. People know of those they keep away."""
    unmarked = [
        candidate
        for candidate in world.nodes
        if candidate.repair is None and not rails.hands_off(candidate)
    ]
    return frozenset(
        node.name for node in unmarked if (case := world.case(node)) is not None and case.action
    )


def _order(node: GpuNode) -> tuple[bool, float, str]:
    return (not node.out, node.repair.case_at if node.repair else 0.0, node.name)


def _known_cases(world: World) -> list[tuple[GpuNode, Case | None]]:
    """Nodes of which there is something to report."""
    pairs = [(node, world.case(node)) for node in world.nodes]
    return [(node, case) for node, case in pairs if case or node.repair or node.error]


def _next(node: GpuNode, turn: _Round) -> Next:
    case = turn.world.case(node)
    if node.error:
        remedy = "take the annotation away when the node is well"
        return hold(node, case, [f"{node.error}; {remedy}"])
    repair = node.repair
    if repair is None:
        return _begin(node, case, turn) if case else None
    if repair.state in OUT and (cancellation := cancelled(node, turn.now)):
        return cancellation
    return _STATES[repair.state](node, repair, case, turn)


def _begin(node: GpuNode, case: Case, turn: _Round) -> Next:
    """The first step of a repair; a node that people keep from repairs is not even marked."""
    if reasons := rails.hands_off(node):
        return hold(node, case, reasons)
    return _observed_anew(node, case, turn.now)


def _observed_anew(node: GpuNode, case: Case, now: float) -> Step:
    since = now if case.action else 0.0
    repair = Repair(
        state="observed", since=now, case_at=since, action=case.action, gpus=case.gpus,
        reason=case.reason, why=case.cause,
    )  # fmt: skip
    return step(node, repair, case.cause)


def _observed(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    if case is None:
        return cleared(node, "what was seen has gone")
    if bool(case.action) != bool(repair.action):
        return _observed_anew(node, case, turn.now)
    if case.action is None:
        return hold(node, case, ["it is not enough for a repair"])
    until = repair.case_at + turn.limits.confirm_s
    if turn.now < until:
        return hold(node, case, [f"it is waited until {stamp(until)}, whether it passes"])
    changed = moved(repair, "confirmed", turn.now, **of_case(case))
    return step(node, changed, case.cause)


def _confirmed(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    if case is None:
        return cleared(node, "what was seen has gone")
    if case.action is None:
        return _observed_anew(node, case, turn.now)
    often = rails.repaired_too_often(node, turn.now, turn.limits)
    action = None if often else case.action
    reasons = rails.against(node, action, turn.fleet, turn.breaker, turn.now, turn.limits)
    if reasons:
        return hold(node, case, reasons)
    turn.fleet = turn.fleet.without(node)
    state: State = "failed" if often else "quarantined"
    note = f"repaired {turn.limits.max_repairs} times in seven days: for a person" if often else ""
    changed = moved(repair, state, turn.now, cordoned=True, note=note, **of_case(case))
    return replace(step(node, changed, note or case.cause), tainted=True, cordoned=True)


def _quarantined(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    if reasons := rails.holds(turn.breaker, turn.now, turn.limits):
        return hold(node, case, reasons)
    return to(node, "draining", turn.now, "its pods are moved to other nodes")


def _draining(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    reasons = rails.holds(turn.breaker, turn.now, turn.limits)
    if repair.tried and (until := repair.tried + turn.limits.retry_s) > turn.now:
        reasons.append(f"{repair.note}; it is tried again at {stamp(until)}")
    if reasons:
        return hold(node, case, reasons)
    return Work(node=node.name, job="drain", repair=repair, cause=repair.why)


def _drained(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    """The step after the drain; meanwhile the cause may ask for a reboot in place of a reset."""
    action = stronger(repair.action, case.action if case else None)
    reasons = rails.holds(turn.breaker, turn.now, turn.limits)
    if action not in turn.limits.actions:
        reasons.append(f"remediate.actions does not have {action}")
    if reasons:
        return hold(node, case, reasons)
    gpus = tuple(sorted({*repair.gpus, *(case.gpus if case else ())}))
    changed = moved(
        repair, "repairing", turn.now, action=action, gpus=gpus, boot=node.boot, note=""
    )
    return step(node, changed, f"{action}: {repair.why}")


def _repairing(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    if repair.action == "manual" or repair.action is None:
        return _for_person(node, repair, case, "a person has to repair it")
    if repair.action == "reboot" and node.boot != repair.boot:
        if not node.ready:
            return hold(node, case, ["it has rebooted, and is not Ready yet"])
        return to(node, "validating", turn.now, "it has rebooted")
    if reasons := rails.holds(turn.breaker, turn.now, turn.limits):
        return hold(node, case, reasons)
    job: Job = "reboot" if repair.action == "reboot" else "reset"
    return Work(node=node.name, job=job, repair=repair, cause=repair.why)


def _validating(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    return Work(node=node.name, job="prove", repair=repair, cause="its GPUs are proven")


def _watched(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    if case is not None and turn.now >= repair.since + _SETTLE_S:
        return _observed_anew(node, case, turn.now)
    until = repair.since + turn.limits.watch_s
    if case is not None or turn.now < until:
        return hold(node, case, [f"it is back in service, and watched until {stamp(until)}"])
    return cleared(node, "nothing came back while it was watched")


def _failed(node: GpuNode, repair: Repair, case: Case | None, turn: _Round) -> Next:
    cause = f"a person has to repair it: {repair.note or repair.why}"
    return _for_person(node, repair, case, cause)


def _for_person(node: GpuNode, repair: Repair, case: Case | None, cause: str) -> Next:
    if not repair.bundle:
        return Work(node=node.name, job="hand_over", repair=repair, cause=cause)
    return hold(node, case, [f"{cause}; what is known of it: {repair.bundle}"])


_STATES: Mapping[State, Callable[[GpuNode, Repair, Case | None, _Round], Next]] = {
    "observed": _observed,
    "confirmed": _confirmed,
    "quarantined": _quarantined,
    "draining": _draining,
    "drained": _drained,
    "repairing": _repairing,
    "validating": _validating,
    "released": _watched,
    "failed": _failed,
}
