"""The cache of everything the lab makes once: folders named by what they were made from.

`<cache>/store/<name>-<key>/` is complete whenever it exists: it is made beside its place and
renamed into it. `key` is a digest of all that decides the content, so a changed recipe never
meets an old result, and nothing ever has to be invalidated.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from lab.state import cache_dir, lock

KEY_LENGTH = 12  # hex digits: enough for the few hundred folders a cache ever holds


def digest(*parts: str | bytes | Path) -> str:
    """The first 12 hex digits of a SHA-256 over `parts`: the key of a folder in the store.

    A `Path` stands for its content: a file's bytes, or names, modes and bytes of all the files
    below a folder. Its place on this host does not count.
    """
    value = hashlib.sha256()
    for part in parts:
        data = _content(part) if isinstance(part, Path) else part
        data = data.encode() if isinstance(data, str) else data
        value.update(str(len(data)).encode() + b":" + data)
    return value.hexdigest()[:KEY_LENGTH]


def _content(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: the lab is made from this, and it is missing")
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not _is_litter(file)]
    lines = [_line(file, file.relative_to(path).as_posix()) for file in files]
    return "\n".join(lines).encode()


def _is_litter(file: Path) -> bool:
    return "__pycache__" in file.parts


def _line(file: Path, name: str) -> str:
    executable = os.access(file, os.X_OK)
    return f"{name}\t{executable}\t{hashlib.sha256(file.read_bytes()).hexdigest()}"


def folder(name: str) -> Path:
    """Where the store keeps the folder `name` (`<what>-<key>`), whether it is there or not."""
    return cache_dir() / "store" / name


def stored(name: str, make: Callable[[Path], None]) -> Path:
    """The store's folder `name`, made by `make(temporary folder)` when it is missing.

    Two processes that want the same folder do not both make it: the second waits. When `make`
    raises, or is interrupted, nothing is left.
    """
    target = folder(name)
    if target.exists():
        os.utime(target)  # used now: `unused_since` lists what is not any more
        return target
    with lock(f"store-{name}"):
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        for abandoned in target.parent.glob(f".tmp-{name}-*"):  # its maker was killed
            shutil.rmtree(abandoned)
        part = target.parent / f".tmp-{name}-{os.getpid()}"
        part.mkdir()
        try:
            make(part)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        part.rename(target)
    return target


def unused_since(moment: float) -> list[Path]:
    """Folders of the store that nothing has used since `moment` (seconds since the epoch)."""
    folders = (cache_dir() / "store").glob("*-*")
    return sorted(path for path in folders if path.is_dir() and path.stat().st_mtime < moment)
