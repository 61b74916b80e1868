"""How operations tell what they change: old and new values, and what that costs.

An operation calls `record` where it decides that something differs, before its first `yield`:
while pyinfra prepares, it runs an operation no further than that. What is recorded then is the
plan; what is recorded while it executes goes into run.json.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyinfra.api.host import Host
from pyinfra.context import host

from deploys.engine import answers
from gpuboot.plan import Change, Decision, Item

# inventory name and operation -> what it recorded
Records = dict[tuple[str, str], list[Item]]

planned: Records = defaultdict(list)
executed: Records = defaultdict(list)
# inventory name and operation: earlier operations are planned to make all of its changes
repeated: set[tuple[str, str]] = set()
# inventory name -> change as text -> the first operation that is planned to make it
_owners: dict[str, dict[str, str]] = defaultdict(dict)


def record(*items: Item) -> None:
    """Note what the operation that runs now changes on the current host, or costs it."""
    if not items:
        return
    if answers.comparing():
        raise answers.WouldChange
    operation = host.name, host.current_op_hash or ""
    if not host.state.is_executing and _is_repeated(items, *operation):
        repeated.add(operation)
        return
    recorded = (executed if host.state.is_executing else planned)[operation]
    # an operation may be asked twice what it would change
    recorded += [item for item in items if item not in recorded]


def _is_repeated(items: Sequence[Item], target: str, op_hash: str) -> bool:
    """Whether earlier operations of a host are planned to make all of these changes.

    The plan has them there; when the run comes to this operation, it finds them made.
    """
    texts = [str(item) for item in items if isinstance(item, Change)]
    owners = {_owners[target].setdefault(text, op_hash) for text in texts}
    return bool(owners) and op_hash not in owners


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
