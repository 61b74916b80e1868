"""Files we own as a whole, many in one operation with one question to the host."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Generator, Mapping, Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from deploys.facts.files import Files


@operation()
def present(
    contents: Mapping[str, str], mode: str = "644", absent: Sequence[str] = ()
) -> Generator[StringCommand, None, None]:
    """Ensure text files have exactly these contents. Nothing secret: contents are on command lines.

    + contents: absolute path -> text
    + mode: their permissions, octal
    + absent: paths that must not exist
    """
    found = host.get_fact(Files, paths=[*contents, *absent])
    changed = False
    for path, text in contents.items():
        state = found.get(path)
        if state and state.mode == mode and state.sha256 == _digest(text):
            continue
        changed = True
        yield write(path, text, mode)
    for path in absent:
        if path in found:
            changed = True
            yield StringCommand("rm -f", QuoteString(path))
    if not changed:
        host.noop(f"files are as they should be: {', '.join([*contents, *absent])}")


def write(path: str, text: str, mode: str = "644") -> StringCommand:
    """The command that writes a file in one step: a reader sees the old text or the new."""
    part = QuoteString(f"{path}.gpuboot-new")
    return StringCommand(
        "mkdir -p", QuoteString(posixpath.dirname(path)), "&& printf %s", QuoteString(text),
        ">", part, f"&& chmod {mode}", part, "&& mv", part, QuoteString(path),
    )  # fmt: skip


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
