"""What goes into a mirror's folder: files to fetch, and files that the mirror itself makes."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gpuboot.mirror.client import Client
from gpuboot.mirror.manifest import File

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Item:
    """A file to put. + content: its bytes, where they are known already; None: it is fetched"""

    file: File
    content: bytes | None = field(default=None, repr=False)


def make_item(path: str, content: bytes, part: str, source: str = "") -> Item:
    """A file whose content is known. + source: where it came from; "": the mirror made it"""
    digest = hashlib.sha256(content).hexdigest()
    return Item(File(path, digest, len(content), source, part), content)


def unique(items: Iterable[Item]) -> list[Item]:
    """Each path once, in the order in which they came."""
    return list({item.file.path: item for item in items}.values())


def defect(folder: Path, file: File) -> str:
    """What is wrong with a file; "" for nothing. One of another size is not read."""
    path = folder / file.path
    try:
        size = path.stat().st_size
        if size < file.size:
            return f"is cut off: {size} of {file.size} bytes"
        if size == file.size:
            with path.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256:
                    return ""
        return "was altered: its digest is another"
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"


def is_right(folder: Path, file: File) -> bool:
    """Whether a file is there with the digest that it must have."""
    return not defect(folder, file)


def put(client: Client, folder: Path, item: Item) -> bool:
    """Put a file in its place, unless it is right there; whether that took anything.

    Raises `FetchError` and OSError.
    """
    if is_right(folder, item.file):
        return False
    target = folder / item.file.path
    if item.content is not None:
        write(target, item.content)
    else:
        client.download(item.file.source, target, item.file.sha256, item.file.size)
    return True


def write(target: Path, content: bytes) -> None:
    """Write a file whole or not at all, also when the machine stops."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    with part.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(target)


def link(source: Path, target: Path) -> None:
    """Give a file's content another path: a hard link, or a copy where the disk knows no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        part.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, part)
    part.replace(target)
