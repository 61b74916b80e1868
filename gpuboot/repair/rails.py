"""What keeps a repair from being begun. Each rail gives a reason for a person, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpuboot.cluster.repair_keys import BREAKER, OPT_OUT, TAINT_KEY
from gpuboot.config.settings.remediate import Action, Remediate, within
from gpuboot.config.settings.upgrade import batch_size
from gpuboot.repair.repair_model import Breaker, GpuNode, stamp

HOUR_S, WEEK_S = 3600, 7 * 86400
CLOSE_BREAKER = f"when its cause is mended: kubectl -n kube-system delete configmap {BREAKER}"


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """All GPU nodes, with what this decision takes out of service. + out: names of those"""

    nodes: tuple[GpuNode, ...]
    out: frozenset[str]

    @staticmethod
    def of(nodes: Iterable[GpuNode]) -> Fleet:
        fleet_nodes = tuple(nodes)
        return Fleet(
            nodes=fleet_nodes, out=frozenset(node.name for node in fleet_nodes if node.out)
        )

    def without(self, node: GpuNode) -> Fleet:
        """The fleet with another node out of service."""
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
        *([f"the breaker is open: {breaker.cause}; {CLOSE_BREAKER}"] if breaker.opened else []),
        *_time(node, action, now, limits),
        *_room(node, fleet, limits),
    ]


def holds(breaker: Breaker, now: float, limits: Remediate) -> list[str]:
    """Why a repair that was begun does not go on to what ends programs."""
    reasons = [f"the breaker is open: {breaker.cause}; {CLOSE_BREAKER}"] if breaker.opened else []
    return reasons + _window(now, limits)


def repaired_too_often(node: GpuNode, now: float, limits: Remediate) -> bool:
    """Whether only a person may repair it."""
    recent = [past for past in node.past if past.end == "released" and past.at > now - WEEK_S]
    return len(recent) >= limits.max_repairs


def asking(
    nodes: Iterable[GpuNode], new_nodes: frozenset[str], now: float, limits: Remediate
) -> list[str]:
    """Nodes that began to ask for a repair within the breaker's window.

    + new_nodes: nodes that do since this moment
    """
    after = now - limits.breaker_window_s
    return [
        node.name
        for node in nodes
        if node.name in new_nodes or any(at > after for at in _cases(node))
    ]


def opened(
    nodes: tuple[GpuNode, ...],
    new_nodes: frozenset[str],
    breaker: Breaker,
    now: float,
    limits: Remediate,
) -> Breaker | None:
    """The breaker where it opens now; None: it stays as it is."""
    if breaker.opened:
        return None
    asking_nodes = asking(nodes, new_nodes, now, limits)
    if len(asking_nodes) < max(2, batch_size(limits.breaker_share, len(nodes))):
        return None
    cause = (
        f"{len(asking_nodes)} of {len(nodes)} GPU nodes asked for a repair within "
        f"{limits.breaker_window_s} s, up to {stamp(now)}: {', '.join(sorted(asking_nodes))}"
    )
    return Breaker(opened=now, cause=cause)


def _cases(node: GpuNode) -> Iterator[float]:
    """When a node began to ask for a repair, now and earlier."""
    yield from (past.case_at for past in node.past)
    if node.repair and node.repair.case_at:
        yield node.repair.case_at


def _not_allowed(action: Action | None, limits: Remediate) -> bool:
    return action is not None and action not in limits.actions


def hands_off(node: GpuNode) -> list[str]:
    """What people have set on a node that keeps repairs away."""
    reasons = (
        (node.opted_out, f"its label {'='.join(OPT_OUT)} keeps it from repairs"),
        (node.control_plane, "it is a control plane: a person repairs it"),
        (node.cordoned, "somebody else has cordoned it"),
        (node.tainted, f"somebody else has put the taint {TAINT_KEY} on it"),
        (not node.ready, "it is not Ready: nothing can be moved or repaired on it"),
    )
    return [text for applies, text in reasons if applies]


def _time(node: GpuNode, action: Action | None, now: float, limits: Remediate) -> list[str]:
    reasons = _window(now, limits)
    # one that was repaired too often is only taken out of service, which waits for nothing
    last = max(node.past, key=lambda past: past.at, default=None)
    if last and action is not None and (until := last.at + limits.cooldown_h * HOUR_S) > now:
        outcome = "repaired" if last.end == "released" else "taken back by somebody"
        reasons.append(f"it was {outcome} at {stamp(last.at)}, and rests until {stamp(until)}")
    return reasons


def _window(now: float, limits: Remediate) -> list[str]:
    if within(limits.windows, now):
        return []
    return [f"{stamp(now)} is outside of remediate.windows ({', '.join(limits.windows)})"]


def _room(node: GpuNode, fleet: Fleet, limits: Remediate) -> list[str]:
    """What must stay in service."""
    limit = batch_size(limits.max_nodes, len(fleet.nodes))
    out_of_service = sorted(fleet.out - {node.name})
    reasons = []
    if len(out_of_service) >= limit:
        reasons.append(
            f"{len(out_of_service)} of {limit} nodes that may be out of service are: "
            f"{', '.join(out_of_service)}"
        )
    pool = [member for member in fleet.nodes if member.pool == node.pool]
    total = sum(member.capacity for member in pool)
    in_service = sum(
        member.allocatable
        for member in pool
        if member.name not in fleet.out | {node.name} and member.ready and not member.cordoned
    )
    if in_service * 100 < limits.min_healthy_percent * total:
        reasons.append(
            f"{in_service} of {total} GPUs{f' of {node.pool}' if node.pool else ''} would stay in "
            f"service, and remediate.min_healthy_percent asks for {limits.min_healthy_percent} %"
        )
    return reasons
