"""The longest chain of a run: what it would have to do faster to end sooner.

pyinfra runs operation after operation, each on all its hosts, so at every moment the run waits for
one host. Walked from the end of the run to its beginning: what ended last, then what had ended last
when that began, and so on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from gpuboot.verify.report.timeline.stretches import (
    Stretch,
    before_operations,
    of_operations,
)

BETWEEN = "between operations"  # pyinfra's own bookkeeping
_SAME_S = 0.001  # what begins so soon after another ended began at its end


def longest_chain(run: Mapping[str, Any]) -> list[Stretch]:
    """The stretches that the run's duration is made of, in order, without gap or overlap.

    + run: as run.json has it

    Where no host was at work it is what the control machine did: after the first operation
    `between operations`.
    """
    before = before_operations(run)
    control_stretches = [item for item in before if not item.host]
    # whatever is shorter could begin no sooner than what it is to have ended before
    items = [item for item in (*before, *of_operations(run)) if item.seconds > 2 * _SAME_S]
    items = sorted((item for item in items if item.host), key=lambda item: item.finished)
    ends = [item.finished for item in items]
    chain: list[Stretch] = []
    moment = float(run["seconds"])
    while index := bisect_right(ends, moment + _SAME_S):
        latest = items[index - 1]
        # of those that ended together the one that took longest
        simultaneous = (
            item for item in reversed(items[:index]) if item.finished >= latest.finished - _SAME_S
        )
        latest = min(simultaneous, key=lambda item: item.started)
        if moment - latest.finished > _SAME_S:
            chain += reversed(_pieces(control_stretches, latest.finished, moment))
        chain.append(latest)
        moment = latest.started
    chain += reversed(_pieces(control_stretches, 0.0, moment))
    return chain[::-1]


def _pieces(stretches: Sequence[Stretch], started: float, finished: float) -> list[Stretch]:
    """What the control machine did in this time, in order.

    + stretches: noted of it; of two at one moment the one that began later is within the other
    """
    cuts = {
        started,
        finished,
        *(item.started for item in stretches),
        *(item.finished for item in stretches),
    }
    pieces = []
    for start, end in pairwise(sorted(cut for cut in cuts if started <= cut <= finished)):
        middle = (start + end) / 2
        covering = [item for item in stretches if item.started <= middle <= item.finished]
        stage, waits = BETWEEN, False
        if covering:
            inner = max(covering, key=lambda item: item.started)
            stage, waits = inner.stage, bool(inner.waits)
        waited = ((start, end, stage),) if waits else ()
        pieces.append(Stretch(stage=stage, started=start, finished=end, waits=waited))
    return pieces


def longest_links(run: Mapping[str, Any], limit: int) -> list[Stretch]:
    """What took longest of the chain, the longest first; pyinfra's own work as one link each.

    + limit: how many at most
    """
    links: dict[tuple[str, str, str], Stretch] = {}
    for item in longest_chain(run):
        key = (item.stage, item.label, item.host)
        before = links.get(key)
        seconds = item.seconds + (before.seconds if before else 0.0)
        started = before.started if before else item.started
        links[key] = Stretch(
            stage=item.stage,
            label=item.label,
            host=item.host,
            started=started,
            finished=started + seconds,
            waits=(before.waits if before else ()) + item.waits,
            parts=item.parts,
        )
    return sorted(links.values(), key=lambda item: -item.seconds)[:limit]


def link_name(item: Stretch) -> str:
    """A link of the longest chain by its name, and where it ran."""
    name = f"{item.stage} | {item.label}" if item.label not in ("", item.stage) else item.stage
    return f"{name} on {item.host}" if item.host else name
