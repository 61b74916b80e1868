"""The shared libraries that programs in an image need, found on the host or below another root."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from lab.state import LabError

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
LOADER = "/usr/lib64/ld-linux-x86-64.so.2"
# What the libraries need that the container runtime mounts into a GPU container.
GLIBC = ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1")

Source = Path | bytes | str


def libraries(sources: Iterable[Source]) -> dict[str, Path]:
    """The shared libraries that the programs among `sources` need, by their path in an image.

    A program below an unpacked root file system gets the libraries of that root, others get the
    host's. The C library always comes along: programs that the container runtime brings into a
    container, such as nvidia-smi, are linked with it. Raises `LabError` when one is missing, or two
    roots would be mixed.
    """
    programs = [source for source in sources if isinstance(source, Path) and is_dynamic(source)]
    roots = {root_of(program) for program in programs} or {Path("/")}
    if len(roots) > 1:
        raise LabError(f"one image cannot have libraries of {len(roots)} systems: {roots}")
    by_path: dict[str, Path] = {}
    for root in roots:
        folders = library_folders(root)
        for name in GLIBC:
            by_path[f"{LIBRARIES}/{name}"] = _find_first(folders, name)
        by_path[LOADER] = _find_first(folders, "ld-linux-x86-64.so.2")
        for program in programs:
            for library in linked_with(program, root):
                by_path[f"{LIBRARIES}/{library.name}"] = library
    return by_path


def is_dynamic(path: Path) -> bool:
    """Whether a file is an ELF program or library that asks for a dynamic loader or libraries."""
    with path.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return False
    result = subprocess.run(["readelf", "--dynamic", "--wide", str(path)], capture_output=True)
    return b"(NEEDED)" in result.stdout


def root_of(program: Path) -> Path:
    """The root file system that a program lies in: the nearest folder above with a C library."""
    for folder in program.parents:  # /usr has one too where /lib is a link, and is no root
        if folder.name != "usr" and (folder / "lib/x86_64-linux-gnu/libc.so.6").exists():
            return folder
    raise LabError(f"no C library for {program}: the lab's host has to be Debian-like, on amd64")


def library_folders(root: Path) -> list[Path]:
    """Where a Debian root file system keeps its libraries."""
    return [root / "lib/x86_64-linux-gnu", root / "usr/lib/x86_64-linux-gnu"]


def linked_with(program: Path, root: Path) -> list[Path]:
    """The libraries that the loader of `root` would load for a program."""
    loader, *_ = [_find_first(library_folders(root), "ld-linux-x86-64.so.2")]
    search = ":".join(str(folder) for folder in library_folders(root))
    command = [str(loader), "--library-path", search, "--list", str(program)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0 or "not found" in result.stdout:
        raise LabError(f"{program} lacks libraries:\n{result.stdout}{result.stderr}")
    paths = re.findall(r"=> (/\S+) \(", result.stdout)
    return [Path(path) for path in paths]


def _find_first(folders: Iterable[Path], name: str) -> Path:
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise LabError(f"there is no library {name}")
