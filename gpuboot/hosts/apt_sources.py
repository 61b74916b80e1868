"""Entries of apt's sources: lines of a `.list` file, stanzas of a `.sources` file.

apt reads no source at all where two entries of one repository name different keys (sources.list(5)
says nothing of it; apt-pkg/deb/debmetaindex.cc, SetSignedBy). So one of the two has to go.
"""

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

_HIDDEN = "://***@"  # of an address whose name and password the host does not tell
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, order=True)
class Edit:
    """Lines of a sources file that become comments.

    + path: of the file
    + first, last: the lines, counted from 1 in the file as it is
    + text: what stands behind them, whole lines; "": nothing
    """

    path: str
    first: int
    last: int
    text: str = ""


@dataclass(frozen=True)
class Part:
    """A repository of an entry: a stanza has one for each pair of a URI and a suite.

    + uri, suite: which ones, counted from 1
    + base: the folder of its index, as apt resolves it
    """

    uri: int
    suite: int
    base: str


@dataclass(frozen=True)
class Entry:
    """An entry of a sources file that somebody else wrote.

    + first, last: its lines, counted from 1
    + text: these lines, without names and passwords in addresses
    """

    path: str
    first: int
    last: int
    text: str
    parts: tuple[Part, ...]


def same_repository(first: str, second: str) -> bool:
    """Whether two folders of an index are one, whichever way their addresses are written."""
    return _plain(first) == _plain(second)


def _plain(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    host = (parts.hostname or "").rstrip(".")
    if parts.port and parts.port != _PORTS.get(parts.scheme):
        host += f":{parts.port}"
    return host, posixpath.normpath(parts.path).strip("/.")


def replaced(
    entries: Iterable[Entry], gpuboot_folders: Iterable[str]
) -> Iterator[tuple[Entry, Edit]]:
    """The entries that configure one of our own repositories, and what becomes of them.

    + gpuboot_folders: folders of our indices

    Raises `ValueError` for a stanza that cannot be divided.
    """
    folders = list(gpuboot_folders)
    for entry in entries:
        own_parts = [
            part
            for part in entry.parts
            if any(same_repository(part.base, folder) for folder in folders)
        ]
        if own_parts:
            remainder = _without(entry, own_parts) if entry.path.endswith(".sources") else ""
            yield entry, Edit(entry.path, entry.first, entry.last, remainder)


def _without(entry: Entry, own_parts: Sequence[Part]) -> str:
    """The stanzas that a stanza leaves without some of its repositories."""
    fields = _fields(entry.text)
    suites = fields.get("suites", "").split()
    removed = {(part.uri, part.suite) for part in own_parts}
    stanzas = []
    for number, uri in enumerate(fields.get("uris", "").split(), start=1):
        remaining_suites = [
            suite for place, suite in enumerate(suites, start=1) if (number, place) not in removed
        ]
        if remaining_suites:
            other_fields = [
                lines for name, lines in fields.items() if name not in ("uris", "suites")
            ]
            stanzas.append(
                f"URIs: {uri}\nSuites: {' '.join(remaining_suites)}\n" + "".join(other_fields)
            )
    if stanzas and _HIDDEN in entry.text:
        raise ValueError(
            f"lines {entry.first}-{entry.last} of {entry.path} have this repository among others, "
            "and a password"
        )
    return "\n".join(stanzas)


def _fields(text: str) -> dict[str, str]:
    """The fields of a stanza by their lower-case names: words of URIs and Suites, else lines."""
    fields: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        value = line
        if not line[:1].isspace():
            name, _, value = line.partition(":")
            name = name.lower()
        fields[name] = fields.get(name, "") + (
            f" {value}" if name in ("uris", "suites") else f"{line}\n"
        )
    return fields
