"""Files on a host, many in one command."""

import shlex
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deploys.engine.framed import Framed
from gpuboot.hosts.fact_output import Fields

_LARGEST = 262144  # bytes of a file that are read


@dataclass(frozen=True)
class FileState:
    """A regular file: its permissions (octal, without leading 0) and its digest."""

    mode: str
    sha256: str


class Files(Framed[dict[str, FileState]]):
    """Permissions and digests of those of the files that exist."""

    default = dict

    @classmethod
    def merged(
        cls, arguments: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[dict[str, FileState]]], dict[str, Any]]:
        return cls, {
            "paths": list(dict.fromkeys(path for item in arguments for path in item["paths"]))
        }

    @classmethod
    def part(
        cls, combined: dict[str, FileState], arguments: Mapping[str, Any]
    ) -> dict[str, FileState]:
        return {path: combined[path] for path in arguments["paths"] if path in combined}

    def command(self, paths: Iterable[str]) -> str:
        names = " ".join(shlex.quote(path) for path in paths)
        return (
            f'set --; for f in {names}; do if test -f "$f"; then set -- "$@" "$f"; '
            'elif test -e "$f" || test -L "$f"; then echo "- $f"; fi; done; '
            'test $# = 0 || { stat -c "mode %a %n" "$@"; sha256sum "$@" | sed "s/^/sha256 /"; }'
        )

    def process(self, output: list[str]) -> dict[str, FileState]:
        fields = Fields(output, separator=" ", last=None)
        modes = {path: mode for mode, path in fields.words("mode", 2)}
        digests = {path: digest for digest, path in fields.words("sha256", 2)}
        return {
            **{path: FileState(modes[path], digest) for path, digest in digests.items()},
            **{path: FileState("-", "-") for path in fields.raw("-")},
        }


class Folder(Framed[tuple[str, ...]]):
    """Names of what lies in a folder, in order; nothing where there is no such folder."""

    default = tuple

    def command(self, path: str) -> str:
        quoted = shlex.quote(path)
        return f"test ! -d {quoted} || ls -1 {quoted}"

    def process(self, output: list[str]) -> tuple[str, ...]:
        return tuple(output)


class FileTexts(Framed[dict[str, str]]):
    """Texts of those of some files that exist; not for files that hold secrets."""

    of_plan = True

    default = dict

    def command(self, paths: Iterable[str]) -> str:
        names = " ".join(shlex.quote(path) for path in paths)
        return (
            f'for f in {names}; do if test -f "$f"; then '
            f'echo "$f $(head -c {_LARGEST} "$f" | base64 -w 0)"; fi; done'
        )

    def process(self, output: list[str]) -> dict[str, str]:
        texts = {}
        for line in output:
            path, _, text = line.rpartition(" ")
            texts[path] = b64decode(text).decode(errors="replace")
        return texts
