"""Tables about what others publish, each with the day and the place where it was read.

`support.toml` holds those about versions. Tables elsewhere say their `Source` in their own module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any

from gpuboot.config.tables import read_table

# how long before the end of support people are told of it
NEAR_END_DAYS = 90
# how the keys of package repositories are called beside those of the lock
KEY_PREFIX = "repository_keys."
END_METRIC = "gpuboot_support_end_timestamp_seconds"
KEY_END_METRIC = "gpuboot_repository_key_end_timestamp_seconds"
# key of the lock -> the table of its ends, and how many parts of a version name a row of it
_ENDS = {
    "driver.version": ("driver_ends", 1),
    "kubernetes.version": ("kubernetes_ends", 2),
    "containerd.version": ("containerd_ends", 2),
}


def today() -> date:
    """The day of this machine's clock, UTC."""
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Source:
    """Where a table about others was read.

    + as_of: the day of the newest text of it that was read
    + source: where it is
    """

    as_of: date
    source: str

    def age(self) -> str:
        """How old the table is, for people: `as of 2026-09-08, 79 days old`."""
        return f"as of {self.as_of}, {(today() - self.as_of).days} days old"

    def unknown(self, subject: str) -> str:
        """A sentence: the table does not know the subject. + subject: e.g. `driver branch 610`"""
        return f"the table of {self.source} ({self.age()}) does not know {subject}"


@dataclass(frozen=True)
class Table(Source):
    """A table of `support.toml`. + rows: as they stand there"""

    rows: Any


@dataclass(frozen=True)
class End:
    """The end of something that a site depends on.

    + key: as in the lock, e.g. `driver.version`, or `repository_keys.NAME`
    + version: the version, or the key's fingerprint
    + day: its last day; None: never, or nobody has published one
    """

    key: str
    version: str
    day: date | None

    def to_json(self) -> dict[str, str | None]:
        """The end as `gpuboot plan` prints it."""
        day = self.day.isoformat() if self.day else None
        return {"key": self.key, "version": self.version, "end": day}


def end_of_json(document: Mapping[str, Any]) -> End:
    """The inverse of `End.to_json`."""
    day = date.fromisoformat(document["end"]) if document["end"] else None
    return End(document["key"], document["version"], day)


def metrics(ends: Iterable[End], cluster: str, command: str) -> list[str]:
    """Lines for node-exporter's textfile collector: when support and keys end.

    + command: who writes them. node-exporter fails where two files have the same series
    """
    texts = {END_METRIC: "When support of a version ends.",
             KEY_END_METRIC: "When the key of a package repository ends."}  # fmt: skip
    samples: dict[str, list[str]] = {name: [] for name in texts}
    for item in ends:
        if item.day is None:
            continue
        is_key = item.key.startswith(KEY_PREFIX)
        labels = {"cluster": cluster, "command": command}
        labels |= (
            {"repository": item.key.removeprefix(KEY_PREFIX), "fingerprint": item.version}
            if is_key
            else {"key": item.key, "version": item.version}
        )
        text = ",".join(f'{name}="{value}"' for name, value in labels.items())
        stamp = datetime.combine(item.day, time(), UTC).timestamp()
        metric = KEY_END_METRIC if is_key else END_METRIC
        samples[metric].append(f"{metric}{{{text}}} {stamp:.0f}")
    return [
        line
        for name, lines in samples.items()
        if lines
        for line in (f"# HELP {name} {texts[name]}", f"# TYPE {name} gauge", *lines)
    ]


@cache
def _tables() -> dict[str, Any]:
    return read_table("config/support.toml")


def names() -> list[str]:
    """The names of all tables."""
    return list(_tables())


def table(name: str) -> Table:
    """A table of `support.toml`. Raises KeyError for a table without `as_of` and `source`."""
    data = _tables()[name]
    return Table(data["as_of"], data["source"], data["rows"])


def branch(version: str, parts: int) -> str:
    """The first parts of a version: of v1.36.6 two are 1.36."""
    return ".".join(version.lstrip("v").split("-")[0].split(".")[:parts])


def end(key: str, version: str) -> End:
    """When support of a locked version ends. + key: as in the lock"""
    if key not in _ENDS:
        return End(key, version, None)
    name, parts = _ENDS[key]
    return End(key, version, table(name).rows.get(branch(version, parts)))


def read_at(key: str) -> date:
    """The day of what was read of the end of support of a locked version. + key: as in the lock

    Most have no table of ends: then of their release notes.
    """
    name, _ = _ENDS.get(key, ("steps", 0))
    return table(name).as_of


def end_warnings(key: str, version: str) -> Iterator[str]:
    """Warn that a locked version's support has ended, ends soon, or that its end is not known."""
    name, parts = _ENDS[key]
    subject = f"{key.partition('.')[0]} {branch(version, parts)}"
    last_day = end(key, version).day
    source = table(name)
    if last_day is None:
        yield f"{source.unknown(f'when support of {subject} ends')}; remedy: look there"
    elif (last_day - today()).days < NEAR_END_DAYS:
        verb = "ended" if last_day < today() else "ends"
        yield (
            f"support of {subject} {verb} on {last_day} ({source.source}, {source.age()}); "
            f"remedy: set versions.{key} to one of a newer branch; `gpuboot outdated` lists them"
        )
