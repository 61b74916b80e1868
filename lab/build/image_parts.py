"""What the lab's images have in common: where their content comes from, and a shell."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from lab.build.golang import module_version
from lab.build.images import SYMLINK
from lab.build.libraries import Source

Programs = Mapping[str, Path]  # what `lab.build.programs.build_all` returned

NOBODY_UID = "65534"
SHELL = (
    *("sh", "awk", "cat", "cp", "dirname", "echo", "env", "false", "grep", "head", "hostname"),
    *("ls", "mkdir", "mktemp", "nc", "rm", "sed", "sha256sum", "sleep", "tail", "test", "tr"),
    *("true", "wc", "wget"),
)


def built_from(module: str) -> str:
    """The origin of an image whose programs are built from a module of lab/build/recipes/go.mod."""
    return f"real, built from the Go module {module}@{module_version(module)}"


# of Python's standard library: what a small program with ctypes and json imports
_PACKAGES = {"collections", "ctypes", "encodings", "importlib", "json", "re"}
_EXTENSIONS = {"_ctypes", "_json", "_struct", "math"}


def python() -> dict[str, Source]:
    """The Python that runs the lab, as /usr/bin/python3, with a part of its standard library; and
    `date`, which NVIDIA's images have from Ubuntu and the script of a load needs beside it.
    """
    library = Path(sysconfig.get_path("stdlib"))
    inside = f"/usr/lib/{library.name}"
    python_files = [*library.glob("*.py"), *(library / "lib-dynload").glob("*.so")]
    python_files += [path for name in _PACKAGES for path in (library / name).rglob("*.py")]
    files: dict[str, Source] = {"/usr/bin/python3": Path(sys.executable).resolve()}
    files["/usr/bin/date"] = f"{SYMLINK}busybox"
    for path in sorted(python_files):
        if path.suffix == ".py" or path.name.partition(".")[0] in _EXTENSIONS:
            files[f"{inside}/{path.relative_to(library)}"] = path.resolve()
    return files


def shell(programs: Programs) -> dict[str, Source]:
    """Debian's static busybox, and the commands of it that scripts in the lab's pods use."""
    return {"/usr/bin/busybox": programs["busybox"], **links(*SHELL)}


def links(*names: str) -> dict[str, Source]:
    """Commands of busybox, which is in the image."""
    return {f"/usr/bin/{name}": f"{SYMLINK}busybox" for name in names}
