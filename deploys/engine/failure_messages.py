"""What an operation said that failed."""

from __future__ import annotations

from pyinfra.api.state import State

from deploys.engine import commands

_TAIL_LINES = 20  # lines of a failed command's output that are kept


def message(state: State, host: str, op_hash: str) -> str:
    """Ours their own text, commands what they wrote; "" for nothing.

    + host: inventory name
    """
    if text := commands.messages.get((host, op_hash)):
        return text
    data = state.ops[state.inventory.get_host(host)].get(op_hash)
    if data is None or not data.operation_meta.is_complete():
        return ""
    meta = data.operation_meta
    lines = (meta.stderr or meta.stdout).strip().splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
