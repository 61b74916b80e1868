"""Keys of package repositories, and when they end: apt then refuses all that they signed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuboot.fact_output import Fields
from gpuboot.hosts.repository_state import NEAR_END_S, day


@dataclass(frozen=True)
class RepositoryKey:
    """A key that a host has for one of gpuboot's repositories.

    + repository: its name in `settings.mirrors.apt`
    + end: when it ends, in seconds since 1970; 0: never
    """

    repository: str
    fingerprint: str
    end: int = 0


def parse(values: Fields) -> tuple[RepositoryKey, ...]:
    """What `deploys/facts/repository_keys.sh` printed, be it among other lines."""
    return tuple(
        RepositoryKey(name, fingerprint, int(end))
        for name, fingerprint, end in values.words("repository_key", 3)
    )


def warnings(keys: Mapping[str, Iterable[RepositoryKey]], now: float | None = None) -> list[str]:
    """A line for each key that ends within a month, or has ended, and the hosts that have it.

    + keys: of each host, by its name in the inventory
    + now: seconds since 1970; None: this machine's clock
    """
    present = time.time() if now is None else now
    hosts: dict[RepositoryKey, list[str]] = {}
    for host, of_host in keys.items():
        for key in of_host:
            if key.end and key.end - present < NEAR_END_S:
                hosts.setdefault(key, []).append(host)
    return [
        f"{', '.join(names)}: the key of the {key.repository} repository ({key.fingerprint}) "
        f"{_ends(key.end, present)}; remedy: once its publisher has extended it, a run fetches it "
        "again; a mirror with key_sha256 needs that of its new key"
        for key, names in hosts.items()
    ]


def _ends(end: int, present: float) -> str:
    if end > present:
        return f"ends on {day(end)}, and packages cannot be installed from it afterwards"
    return f"ended on {day(end)}, and packages cannot be installed from it"
