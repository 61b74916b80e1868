"""`Release` of an apt repository (Debian wiki, "DebianRepository/Format")."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime


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
