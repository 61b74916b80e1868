"""Where each GPU minute of each node went: to a pod, to nobody, or to nothing at all.

For every node and step: what pods held + free + stranded + closed + unhealthy + missing + unknown =
installed. What a pod holds is the pod's, even if the node is cordoned or the GPU is broken: nobody
else could have it. What nobody reported is unknown, and never free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gpuboot.usage.cost.energy import shared_out
from gpuboot.usage.cost.node_hours import Node, nodes, watched
from gpuboot.usage.cost.readings import Key
from gpuboot.usage.series import History

TENANT, UNALLOCATED, UNAVAILABLE = "tenant", "unallocated", "unavailable"
# what nobody held, and why: in the order in which it is taken from what is left of a node
REASONS = {
    "free": UNALLOCATED,
    "closed": UNAVAILABLE,
    "unhealthy": UNAVAILABLE,
    "unknown": UNAVAILABLE,
    "stranded": UNALLOCATED,
    "missing": UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """GPU minutes of one step, of one model of one node.

    + kind: tenant, unallocated or unavailable; reason: one of `REASONS`, "" for a tenant
    + used: minutes in which the engine worked; sm: its SMs; unmeasured: of which nobody knows
    """

    step: int
    node: str
    model: str
    kind: str
    minutes: float
    reason: str = ""
    namespace: str = ""
    pod: str = ""
    used: float = 0.0
    sm: float = 0.0
    unmeasured: float = 0.0
    kwh: float = 0.0


@dataclass
class Ledger:
    """All entries of a window, and what they must add up to.

    + installed: (step, model) -> GPU minutes, from what the nodes have, not from the entries
    + beyond: node -> GPU minutes that sources claim beyond what is installed
    """

    entries: list[Entry] = field(default_factory=list)
    installed: dict[tuple[int, str], float] = field(default_factory=dict)
    beyond: dict[str, float] = field(default_factory=dict)
    of_node: dict[str, float] = field(default_factory=dict)
    kwh: float = 0.0


def ledger(history: History) -> Ledger:
    """The ledger of what `gpuboot.usage.cost.cost_question` gave."""
    gpu_ledger = Ledger()
    full = history.window.step / 60
    times = watched(history)
    for node in nodes(history):
        for step in history.window.steps:
            _enter(gpu_ledger, node, step, full, min(full, times.get(step, 0.0)))
    return gpu_ledger


def _enter(gpu_ledger: Ledger, node: Node, step: int, full: float, watched_minutes: float) -> None:
    """Enter a node's GPU minutes of one step into the ledger."""
    held_minutes = node.held_minutes(step)
    installed = node.installed(step, full, watched_minutes)
    if not installed:
        return
    idle_minutes = max(0.0, installed - sum(held_minutes.values()))
    idle, contradicted = _divide_idle(node.unheld(step, full, watched_minutes), idle_minutes)
    beyond = node.beyond(step) + contradicted
    gpu_ledger.beyond[node.name] = gpu_ledger.beyond.get(node.name, 0.0) + beyond
    gpu_ledger.of_node[node.name] = gpu_ledger.of_node.get(node.name, 0.0) + installed
    energy = node.energy(step)
    gpu_ledger.kwh += energy.total
    parts = shared_out(energy, held_minutes, idle)
    for model, weight in node.models(step).items():
        key = step, model
        gpu_ledger.installed[key] = gpu_ledger.installed.get(key, 0.0) + installed * weight
        gpu_ledger.entries.extend(_entries(node, step, model, weight, held_minutes, idle, parts))


def _entries(
    node: Node, step: int, model: str, weight: float,
    held_minutes: Mapping[Key, float], idle: Mapping[str, float], parts: Mapping[Key | str, float],
) -> Iterator[Entry]:  # fmt: skip
    for pod, minutes in held_minutes.items():
        measured, used, sm = node.activity(step, pod)
        unmeasured = max(0.0, minutes - measured)
        yield Entry(
            step, node.name, model, TENANT, minutes * weight,
            namespace=pod[0],
            pod=pod[1],
            used=min(used, minutes - unmeasured) * weight,
            sm=min(sm, minutes - unmeasured) * weight,
            unmeasured=unmeasured * weight,
            kwh=parts.get(pod, 0.0) * weight,
        )  # fmt: skip
    for reason, minutes in idle.items():
        if minutes or parts.get(reason):
            yield Entry(
                step, node.name, model, REASONS[reason], minutes * weight, reason,
                kwh=parts.get(reason, 0.0) * weight,
            )  # fmt: skip


def _divide_idle(
    claims: Mapping[str, float], idle_minutes: float
) -> tuple[dict[str, float], float]:
    """Unheld GPU minutes by reason; and by how much the claims exceed what is left."""
    minutes_by_reason: dict[str, float] = {}
    contradicted = 0.0
    for reason in REASONS:
        if reason == "missing":
            minutes_by_reason[reason] = idle_minutes
            break
        claim = claims.get(reason, 0.0)
        minutes_by_reason[reason] = min(claim, idle_minutes)
        contradicted += claim - minutes_by_reason[reason]
        idle_minutes -= minutes_by_reason[reason]
    return minutes_by_reason, contradicted
