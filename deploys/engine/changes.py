"""How operations tell what they change: old and new values, and what that costs.

An operation calls `record` where it decides that something differs, before its first `yield`:
while pyinfra prepares, it runs an operation no further than that. What is recorded then is the
plan; what is recorded while it executes goes into run.json.
"""

from __future__ import annotations

from collections import defaultdict

from pyinfra.api.host import Host
from pyinfra.context import host

from deploys.engine import answers
from gpuboot.plan import Decision, Item

# inventory name and operation -> what it recorded
Records = dict[tuple[str, str], list[Item]]

planned: Records = defaultdict(list)
executed: Records = defaultdict(list)


def record(*items: Item) -> None:
    """Note what the operation that runs now changes on the current host, or costs it."""
    if items and answers.comparing():
        raise answers.WouldChange
    recorded = (executed if host.state.is_executing else planned)[
        host.name, host.current_op_hash or ""
    ]
    # an operation may be asked twice what it would change
    recorded += [item for item in items if item not in recorded]


def respect(*items: Decision) -> None:
    """Note what somebody has decided otherwise: it is no change, and the operation goes on."""
    if items and answers.comparing():
        answers.mark_message()
    elif items:
        record(*items)


def forget(target: Host, op_hash: str) -> None:
    """Drop what an operation recorded while it executed: it is about to begin again."""
    executed.pop((target.name, op_hash), None)


def recorded(target: str, op_hash: str) -> list[Item]:
    """What an operation has recorded on a host: as it executed, else as it was planned.

    + target: inventory name
    """
    return executed.get((target, op_hash)) or planned.get((target, op_hash)) or []
