"""The longest chain of a run: what it would have to do faster to end sooner.

pyinfra runs operation after operation, each on all its hosts, so at every moment the run waits for
one host. Walked from the end of the run to its beginning: what ended last, then what had ended last
when that began, and so on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from gpuboot.verify.report.timeline.stretches import (
    PREPARE,
    Stretch,
    before_operations,
    of_operations,
    timed,
)

BETWEEN = "between operations"  # pyinfra's own bookkeeping
_SAME_S = 0.001  # what begins so soon after another ended began at its end


def longest_chain(run: Mapping[str, Any]) -> list[Stretch]:
    """The stretches that the run's duration is made of, in order, without gap or overlap.

    + run: as run.json has it. Of an old file nothing is known: an empty list

    Where nothing was noted pyinfra was at work: `prepare` before the first operation, afterwards
    `between operations`.
    """
    if not timed(run):
        return []
    items = _steps(run)
    ends = [item.ended for item in items]
    chain: list[Stretch] = []
    moment = float(run["seconds"])
    first = next((item["begun"] for item in run["operations"]), moment)
    while moment > _SAME_S:
        index = bisect_right(ends, moment + _SAME_S)
        if index == 0:
            chain.append(_bookkeeping(0.0, moment, first))
            break
        latest = items[index - 1]
        # of those that ended together the one that took longest
        same = (item for item in reversed(items[:index]) if item.ended >= latest.ended - _SAME_S)
        latest = min(same, key=lambda item: item.begun)
        if moment - latest.ended > _SAME_S:
            chain.append(_bookkeeping(latest.ended, moment, first))
        chain.append(latest)
        moment = latest.begun
    return chain[::-1]


def _steps(run: Mapping[str, Any]) -> list[Stretch]:
    """What can be a link of the chain, by its end."""
    before = [item for item in before_operations(run) if item.stage != PREPARE]
    # what is noted for each host is not looked at as a whole as well
    on_hosts = {item.stage for item in before if item.host}
    before = [item for item in before if item.host or item.stage not in on_hosts]
    # whatever is shorter could begin no sooner than what it is to have ended before
    items = [item for item in (*before, *of_operations(run)) if item.seconds > 2 * _SAME_S]
    return sorted(items, key=lambda item: item.ended)


def _bookkeeping(begun: float, ended: float, first: float) -> Stretch:
    return Stretch(stage=PREPARE if begun < first else BETWEEN, begun=begun, ended=ended)


def longest_links(run: Mapping[str, Any], most: int) -> list[Stretch]:
    """What took longest of the chain, the longest first; pyinfra's own work as one link each.

    + most: how many at most
    """
    links: dict[tuple[str, str, str], Stretch] = {}
    for item in longest_chain(run):
        key = (item.stage, item.label, item.host)
        before = links.get(key)
        seconds = item.seconds + (before.seconds if before else 0.0)
        begun = before.begun if before else item.begun
        links[key] = Stretch(
            stage=item.stage,
            label=item.label,
            host=item.host,
            begun=begun,
            ended=begun + seconds,
            waits=(before.waits if before else ()) + item.waits,
            parts=item.parts,
        )
    return sorted(links.values(), key=lambda item: -item.seconds)[:most]
