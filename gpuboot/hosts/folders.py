"""The file systems that folders of the cluster lie on, or will."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class FileSystem:
    """What a folder, or the nearest one above it that is there, lies on. Sizes in KiB.

    + inodes, inodes_free: 0 where the file system has no fixed number of them
    + kind: its type, as mount names it
    + options: of its mount
    """

    mount: str
    kind: str
    size_kib: int
    free_kib: int
    inodes: int = 0
    inodes_free: int = 0
    options: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Folders:
    """The folders by path. + zfs: version of the kernel's ZFS; "" for none"""

    folders: Mapping[str, FileSystem] = field(default_factory=dict)
    zfs: str = ""


def parse(values: Fields) -> Folders:
    """What `deploys/parts/node/folders.sh` printed, be it among other lines."""
    ftype = values.pairs("xfs")
    folders = {}
    for path, size, free, inodes, inodes_free, kind, options, mount in values.words("folder", 8):
        folders[path] = FileSystem(
            mount,
            kind,
            int(size),
            int(free),
            _number(inodes),
            _number(inodes_free),
            frozenset([*options.split(","), *([ftype[mount]] if mount in ftype else [])]),
        )
    return Folders(folders, values.first("zfs"))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
