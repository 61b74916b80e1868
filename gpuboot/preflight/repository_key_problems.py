"""Keys of package repositories that end soon, or have ended."""

import time
from collections.abc import Iterable, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.support import KEY_PREFIX
from gpuboot.hosts import repository_keys
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.repository_keys import RepositoryKey
from gpuboot.hosts.repository_state import NEAR_END_S, day


def warnings(
    nodes: Iterable[Node], states: Mapping[str, NodeState], now: float | None = None
) -> list[str]:
    """A line for each key that ends within a month, or has ended, and the hosts that have it.

    + now: seconds since 1970; None: this machine's clock
    """
    present = time.time() if now is None else now
    hosts: dict[RepositoryKey, list[str]] = {}
    for node in nodes:
        for key in states[node.host].repository_keys if node.host in states else ():
            if key.end and key.end - present < NEAR_END_S:
                hosts.setdefault(key, []).append(node.host)
    return [
        f"{', '.join(names)}: the key of the {key.repository} repository ({key.fingerprint}) "
        f"{_ends(key.end, present)}; remedy: once its publisher has extended it, a run fetches it "
        "again; a mirror with key_sha256 needs that of its new key"
        for key, names in hosts.items()
    ]


def summary(states: Mapping[str, NodeState]) -> str:
    """When each key that a host has ends, on one line; "" where none is known."""
    ends = repository_keys.ends(key for state in states.values() for key in state.repository_keys)
    names = [f"{end.key.removeprefix(KEY_PREFIX)} {end.day or 'never'}" for end in ends]
    return f"keys of package repositories end: {', '.join(dict.fromkeys(names))}" if names else ""


def _ends(end: int, present: float) -> str:
    if end > present:
        return f"ends on {day(end)}, and packages cannot be installed from it afterwards"
    return f"ended on {day(end)}, and packages cannot be installed from it"
