"""`Release` of an apt repository, read and written (Debian wiki, "DebianRepository/Format")."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from debian.deb822 import Release as Fields


@dataclass(frozen=True)
class ReleaseFile:
    """A file that a repository's Release vouches for."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Release:
    """+ files: their names below the folder of Release

    + by_hash: the files are there under their digests too, which stay while a repository changes
    + valid_until: when its publisher no longer stands by it; None: never
    """

    files: Mapping[str, ReleaseFile]
    by_hash: bool
    valid_until: datetime | None


def parse(text: str) -> Release:
    """What a `Release` says; its signature is checked before."""
    fields = Fields(text)
    until = fields.get("Valid-Until")
    return Release(
        {
            entry["name"].removeprefix("./"): ReleaseFile(entry["sha256"], int(entry["size"]))
            for entry in fields.get("SHA256", ())
        },
        fields.get("Acquire-By-Hash", "").lower() == "yes",
        parsedate_to_datetime(until) if until else None,
    )


def text(fields: Mapping[str, str], indexes: Mapping[str, bytes]) -> str:
    """The text of a `Release`.

    + fields: Origin, Date (`date`) and the like
    + indexes: name below its folder -> content
    """
    head = "".join(f"{name}: {value}\n" for name, value in fields.items())
    file_lines = "".join(
        f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
        for name, content in indexes.items()
    )
    return f"{head}SHA256:\n{file_lines}"


# of the field Date
DATE = "%a, %d %b %Y %H:%M:%S UTC"


def date(moment: datetime | None = None) -> str:
    """A moment as `Release` has it; now by default."""
    return (moment or datetime.now(UTC)).strftime(DATE)
