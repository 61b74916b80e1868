"""Keys of package repositories, and when they end: apt then refuses all that they signed."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboot.hosts.fact_output import Fields


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
