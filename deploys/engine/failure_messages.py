"""What an operation said that failed."""

from __future__ import annotations

from pyinfra.api.state import State

from deploys.engine import commands
from deploys.engine.connections import is_lost

_TAIL_LINES = 20  # lines of a failed command's output that are kept
_CAUSE = "the SSH connection was lost"
_REMEDY = "see whether the host answers (`pyinfra INVENTORY exec -- true`), then run again"


def message(state: State, host: str, op_hash: str) -> str:
    """The text of a failed operation: our own, or what its command wrote; "" for nothing.

    + host: inventory name
    """
    text = commands.messages.get((host, op_hash)) or _output(state, host, op_hash)
    if not text and is_lost(state.inventory.get_host(host)):
        return commands.failure(_CAUSE, _REMEDY)
    return text


def _output(state: State, host: str, op_hash: str) -> str:
    data = state.ops[state.inventory.get_host(host)].get(op_hash)
    if data is None or not data.operation_meta.is_complete():
        return ""
    meta = data.operation_meta
    lines = (meta.stderr or meta.stdout).strip().splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
