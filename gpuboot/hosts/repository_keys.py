"""Keys of package repositories, and when they end: apt then refuses all that they signed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from gpuboot.config.support import KEY_PREFIX, End
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
    """What `deploys/parts/packages/repository_keys.sh` printed, be it among other lines."""
    return tuple(
        RepositoryKey(name, fingerprint, int(end))
        for name, fingerprint, end in values.words("repository_key", 3)
    )


def ends(keys: Iterable[RepositoryKey]) -> list[End]:
    """When each of some keys ends, by repository, each once."""
    unique_keys = sorted(set(keys), key=lambda key: (key.repository, key.fingerprint))
    return [
        End(
            f"{KEY_PREFIX}{key.repository}",
            key.fingerprint,
            datetime.fromtimestamp(key.end, UTC).date() if key.end else None,
        )
        for key in unique_keys
    ]
