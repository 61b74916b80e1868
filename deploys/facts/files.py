"""Files on a host, many in one command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from typing_extensions import override

from deploys.facts.framed import Framed


@dataclass(frozen=True)
class FileState:
    """A regular file: its permissions (octal, without leading 0) and its digest."""

    mode: str
    sha256: str


class Files(Framed[dict[str, FileState]]):
    """Permissions and digests of those of the files that exist."""

    default = dict

    @override
    def command(self, paths: Iterable[str]) -> str:
        names = " ".join(shlex.quote(path) for path in paths)
        return (
            f'for f in {names}; do if test -f "$f"; then '
            'echo "$(stat -c %a "$f") $(sha256sum < "$f" | cut -d \' \' -f 1) $f"; '
            'elif test -e "$f" || test -L "$f"; then echo "- - $f"; fi; done'
        )

    @override
    def process(self, output: list[str]) -> dict[str, FileState]:
        found = {}
        for line in output:
            mode, digest, path = line.split(" ", 2)
            found[path] = FileState(mode, digest)
        return found


class Folder(Framed[tuple[str, ...]]):
    """Names of what lies in a folder, in order; nothing where there is no such folder."""

    default = tuple

    @override
    def command(self, path: str) -> str:
        quoted = shlex.quote(path)
        return f"test ! -d {quoted} || ls -1 {quoted}"

    @override
    def process(self, output: list[str]) -> tuple[str, ...]:
        return tuple(output)
