"""What may come next for a node: a change of its object, a piece of work, or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpuboot.cluster.repair_keys import TAINT_KEY
from gpuboot.config.settings.remediate import Action, Remediate
from gpuboot.repair.repair_model import GpuNode, Past, Repair, State
from gpuboot.repair.signals import Case

Job = Literal["drain", "reset", "reboot", "prove", "hand_over"]
_ESCALATED: Mapping[Action, Action] = {"reset": "reboot"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change of a node's object, in one write.

    + repair: what its annotation is to say; None: nothing any more
    + past: its earlier repairs
    + tainted: whether it is to carry the taint; cordoned: None: that stays as it is
    + cause: for a person
    """

    node: str
    before: State | None
    repair: Repair | None
    past: tuple[Past, ...]
    tainted: bool
    cause: str
    cordoned: bool | None = None

    @property
    def after(self) -> State | None:
        return self.repair.state if self.repair else None

    @property
    def leaves_service(self) -> bool:
        """Whether the node leaves service by it."""
        return self.cordoned is True


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be done on a node; `concluded` makes a step of how it ended."""

    node: str
    job: Job
    repair: Repair
    cause: str


@dataclass(frozen=True, kw_only=True)
class HeldNode:
    """A node of which something is known, and with which nothing is done.

    + action: what would be done; reasons: why not
    """

    node: str
    state: State | None
    action: Action | None
    saw: str
    reasons: tuple[str, ...]


def concluded(node: GpuNode, work: Work, failure: str, now: float, limits: Remediate) -> Step:
    """What follows from a piece of work.

    + node: as it is now; failure: what went wrong, or ""
    """
    repair = work.repair
    if work.job == "drain":
        if failure:
            updated = replace(repair, note=failure, tried=now)
            return step(node, updated, f"not drained yet: {failure}")
        return to(node, "drained", now, "its pods have left")
    if not failure:
        if work.job == "prove":
            return released(node, now)
        return to(node, "validating", now, f"{_describe_work(work)}")
    escalation = _ESCALATED.get(repair.action) if repair.action else None
    if escalation is None or escalation not in limits.actions:
        return to(node, "failed", now, failure)
    cause = f"{failure}; a {escalation} is next"
    return step(node, moved(repair, "drained", now, action=escalation, note=failure), cause)


def unfinished(node: GpuNode, work: Work, cause: str) -> Step | None:
    """What is noted of work that came to no verdict, and is done again; None: nothing new.

    + cause: it did not
    """
    # where a person has the node already, the note says why
    if work.job == "hand_over" or work.repair.note == cause:
        return None
    return step(node, replace(work.repair, note=cause), f"{work.job}: to be done again: {cause}")


def handed_over(node: GpuNode, work: Work, bundle: str) -> Step:
    """The step that hands a repair to a person. + bundle: where its facts are, `machine:path`"""
    return step(node, replace(work.repair, bundle=bundle), f"for a person: see {bundle}")


def last(node: GpuNode) -> Step | None:
    """The last step of a repair that is under way, as it was taken."""
    repair = node.repair
    if repair is None or not repair.said:
        return None
    return Step(
        node=node.name, before=repair.before, repair=repair, past=node.past, tainted=node.tainted,
        cause=repair.said,
    )  # fmt: skip


def _describe_work(work: Work) -> str:
    return {"reset": "its GPUs were reset", "reboot": "it has rebooted"}.get(work.job, work.job)


def cancelled(node: GpuNode, now: float) -> Step | None:
    """The end of a repair that a person has ended: its taint is gone, or its cordon."""
    repair = node.repair
    assert repair is not None
    untainted, uncordoned = not node.tainted, repair.cordoned and not node.cordoned
    if not untainted and not uncordoned:
        return None
    removed_mark = f"its taint {TAINT_KEY} away" if untainted else "its cordon away"
    past = Past(
        case_at=repair.case_at, at=now, action=repair.action, end="cancelled", why=repair.why
    )
    return Step(
        node=node.name, before=repair.state, repair=None, past=(*node.past, past), tainted=False,
        cause=f"cancelled: somebody has taken {removed_mark}",
    )  # fmt: skip


def released(node: GpuNode, now: float) -> Step:
    repair = node.repair
    assert repair is not None
    past = Past(
        case_at=repair.case_at, at=now, action=repair.action, end="released", why=repair.why
    )
    return Step(
        node=node.name,
        before=repair.state,
        repair=moved(repair, "released", now, cordoned=False, note=""),
        past=(*node.past, past),
        tainted=False,
        cordoned=False if repair.cordoned else None,
        cause="its GPUs are proven",
    )


def to(node: GpuNode, state: State, now: float, cause: str) -> Step:
    assert node.repair is not None
    return step(node, moved(node.repair, state, now, note=cause), cause)


def cleared(node: GpuNode, cause: str) -> Step:
    return step(node, None, cause)


def step(node: GpuNode, repair: Repair | None, cause: str) -> Step:
    """A step that leaves taint and cordon as they are."""
    return Step(
        node=node.name, before=node.state, repair=repair, past=node.past, tainted=node.tainted,
        cause=cause,
    )  # fmt: skip


def moved(repair: Repair, state: State, now: float, **changes: object) -> Repair:
    return replace(repair, state=state, since=now, **changes)  # type: ignore[arg-type]


def of_case(case: Case) -> dict[str, object]:
    return {"action": case.action, "gpus": case.gpus, "reason": case.reason, "why": case.cause}


def hold(node: GpuNode, case: Case | None, reasons: Sequence[str]) -> HeldNode:
    repair = node.repair
    action = case.action if case else repair.action if repair else None
    saw = case.cause if case else repair.why if repair else ""
    return HeldNode(
        node=node.name, state=node.state, action=action, saw=saw, reasons=tuple(reasons)
    )
