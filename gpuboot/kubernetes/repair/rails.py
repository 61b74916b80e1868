"""What keeps a repair from being begun. Each rail gives a reason for a person, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpuboot.config.settings.remediate import Action, Remediate, within
from gpuboot.config.settings.upgrade import batch_size
from gpuboot.kubernetes.repair.model import BREAKER, OPT_OUT, TAINT_KEY, Breaker, GpuNode, stamp

HOUR_S, WEEK_S = 3600, 7 * 86400
CLOSE_BREAKER = f"when its cause is mended: kubectl -n kube-system delete configmap {BREAKER}"


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """All GPU nodes, with what this decision takes out of service. + out: names of those"""

    nodes: tuple[GpuNode, ...]
    out: frozenset[str]

    @staticmethod
    def of(nodes: Iterable[GpuNode]) -> Fleet:
        found = tuple(nodes)
        return Fleet(nodes=found, out=frozenset(node.name for node in found if node.out))

    def without(self, node: GpuNode) -> Fleet:
        """With another node out of service."""
        return Fleet(nodes=self.nodes, out=self.out | {node.name})


def against(
    node: GpuNode,
    action: Action | None,
    fleet: Fleet,
    breaker: Breaker,
    now: float,
    limits: Remediate,
) -> list[str]:
    """Why the repair of a node may not begin now; nothing: it may.

    + action: what would be done; None: it is only taken out of service
    """
    return [
        *hands_off(node),
        *([f"remediate.actions does not have {action}"] if _not_allowed(action, limits) else []),
        *([f"the breaker is open: {breaker.why}; {CLOSE_BREAKER}"] if breaker.opened else []),
        *_time(node, action, now, limits),
        *_room(node, fleet, limits),
    ]


def holds(breaker: Breaker, now: float, limits: Remediate) -> list[str]:
    """Why a repair that was begun does not go on to what ends programs."""
    reasons = [f"the breaker is open: {breaker.why}; {CLOSE_BREAKER}"] if breaker.opened else []
    return reasons + _window(now, limits)


def repaired_too_often(node: GpuNode, now: float, limits: Remediate) -> bool:
    """Whether only a person may repair it."""
    recent = [past for past in node.past if past.end == "released" and past.at > now - WEEK_S]
    return len(recent) >= limits.max_repairs


def asking(
    nodes: Iterable[GpuNode], fresh: frozenset[str], now: float, limits: Remediate
) -> list[str]:
    """Nodes that began to ask for a repair within the breaker's window.

    + fresh: nodes that do since this moment
    """
    after = now - limits.breaker_window_s
    return [
        node.name for node in nodes if node.name in fresh or any(at > after for at in _cases(node))
    ]


def opened(
    nodes: tuple[GpuNode, ...],
    fresh: frozenset[str],
    breaker: Breaker,
    now: float,
    limits: Remediate,
) -> Breaker | None:
    """The breaker where it opens now; None: it stays as it is. + fresh: as of `asking`"""
    if breaker.opened:
        return None
    found = asking(nodes, fresh, now, limits)
    if len(found) < max(2, batch_size(limits.breaker_share, len(nodes))):
        return None
    why = (
        f"{len(found)} of {len(nodes)} GPU nodes asked for a repair within "
        f"{limits.breaker_window_s} s, up to {stamp(now)}: {', '.join(sorted(found))}"
    )
    return Breaker(opened=now, why=why)


def _cases(node: GpuNode) -> Iterator[float]:
    """When a node began to ask for a repair, now and earlier."""
    yield from (past.case_at for past in node.past)
    if node.repair and node.repair.case_at:
        yield node.repair.case_at


def _not_allowed(action: Action | None, limits: Remediate) -> bool:
    return action is not None and action not in limits.actions


def hands_off(node: GpuNode) -> list[str]:
    """What people have said about a node."""
    whose = (
        (node.opted_out, f"its label {'='.join(OPT_OUT)} keeps it from repairs"),
        (node.control_plane, "it is a control plane: a person repairs it"),
        (node.cordoned, "somebody else has cordoned it"),
        (node.tainted, f"somebody else has put the taint {TAINT_KEY} on it"),
        (not node.ready, "it is not Ready: nothing can be moved or repaired on it"),
    )
    return [text for there, text in whose if there]


def _time(node: GpuNode, action: Action | None, now: float, limits: Remediate) -> list[str]:
    reasons = _window(now, limits)
    # one that was repaired too often is only taken out of service, which waits for nothing
    last = max(node.past, key=lambda past: past.at, default=None)
    if last and action is not None and (until := last.at + limits.cooldown_h * HOUR_S) > now:
        what = "repaired" if last.end == "released" else "taken back by somebody"
        reasons.append(f"it was {what} at {stamp(last.at)}, and rests until {stamp(until)}")
    return reasons


def _window(now: float, limits: Remediate) -> list[str]:
    if within(limits.windows, now):
        return []
    return [f"{stamp(now)} is outside of remediate.windows ({', '.join(limits.windows)})"]


def _room(node: GpuNode, fleet: Fleet, limits: Remediate) -> list[str]:
    """What must stay in service."""
    most = batch_size(limits.max_nodes, len(fleet.nodes))
    others = sorted(fleet.out - {node.name})
    reasons = []
    if len(others) >= most:
        reasons.append(
            f"{len(others)} of {most} nodes that may be out of service are: {', '.join(others)}"
        )
    pool = [one for one in fleet.nodes if one.pool == node.pool]
    total = sum(one.capacity for one in pool)
    left = sum(
        one.allocatable
        for one in pool
        if one.name not in fleet.out | {node.name} and one.ready and not one.cordoned
    )
    if left * 100 < limits.min_healthy_percent * total:
        reasons.append(
            f"{left} of {total} GPUs{f' of {node.pool}' if node.pool else ''} would stay in "
            f"service, and remediate.min_healthy_percent asks for {limits.min_healthy_percent} %"
        )
    return reasons
