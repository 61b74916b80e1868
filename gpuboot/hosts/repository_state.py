"""What a host has of a package repository: its file, its key and that key's end, other entries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gpuboot.hosts.apt_sources import Entry, Part
from gpuboot.hosts.fact_output import Fields

NEAR_END_S = (
    30 * 86400
)  # deploys/parts/packages/fact.sh has the same: then a later key is asked for


@dataclass(frozen=True)
class RepositoryState:
    """A configured repository.

    + text: of its file; "" when there is none
    + key_sha256: digest of its key file; "" when there is none
    + key_ends: primary keys in that file and when they end (0: never); not read where the digest is
      enough
    + offered_ends: the same of the publisher's file; read only when a key is near its end
    + own: folders of its indices, as apt resolves them; read only when there are other entries
    + entries: those of other files for the same server
    """

    text: str = ""
    key_sha256: str = ""
    key_ends: dict[str, int] = field(default_factory=dict)
    offered_ends: dict[str, int] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()


def parse(values: Fields) -> RepositoryState:
    """What `deploys/parts/packages/fact.sh` printed."""
    return RepositoryState(
        text="".join(f"{line}\n" for line in values.raw("text")),
        key_sha256=values.first("sha256"),
        key_ends=_ends(values, "key"),
        offered_ends=_ends(values, "offered"),
        own=tuple(values.all("own")),
        entries=_entries(values),
    )


def _ends(values: Fields, name: str) -> dict[str, int]:
    return {fingerprint: int(end) for fingerprint, end in values.words(name, 2)}


def _entries(values: Fields) -> tuple[Entry, ...]:
    texts: dict[tuple[str, int], str] = {}
    for row in values.raw("line"):
        path, first, line = row.split("\t", 2)
        place = (path, int(first))
        texts[place] = texts.get(place, "") + f"{line}\n"
    parts: dict[tuple[str, int], list[Part]] = {}
    lasts: dict[tuple[str, int], int] = {}
    for path, first, last, uri, suite, base in values.rows("entry"):
        place = (path, int(first))
        parts.setdefault(place, []).append(Part(int(uri), int(suite), base))
        lasts[place] = int(last)
    return tuple(
        Entry(path, first, lasts[path, first], texts.get((path, first), ""), tuple(entry_parts))
        for (path, first), entry_parts in parts.items()
    )


def later_key(state: RepositoryState) -> bool:
    """Whether the publisher offers the same keys with a later end."""
    return set(state.offered_ends) == set(state.key_ends) and any(
        _later(state.offered_ends[fingerprint], end) for fingerprint, end in state.key_ends.items()
    )


def _later(first: int, second: int) -> bool:
    return second != 0 and (first == 0 or first > second)


def first_end(keys: Mapping[str, int]) -> int:
    """When the first of some keys ends; 0: never."""
    return min((end for end in keys.values() if end), default=0)


def day(end: int) -> str:
    """The day of such a time, as people write it; "never" for 0."""
    return datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d") if end else "never"
