"""What the lab's images have in common: where their content comes from, and a shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.build.golang import module_version
from lab.build.images import SYMLINK, Source

Programs = Mapping[str, Path]  # what `lab.build.programs.build_all` returned

NOBODY = "65534"
SHELL = (
    *("sh", "awk", "cat", "cp", "dirname", "echo", "env", "false", "grep", "head", "hostname"),
    *("ls", "mkdir", "mktemp", "nc", "rm", "sed", "sha256sum", "sleep", "tail", "test", "tr"),
    *("true", "wc", "wget"),
)


def built_from(module: str) -> str:
    """The origin of an image whose programs are built from a module of lab/build/recipes/go.mod."""
    return f"real, built from the Go module {module}@{module_version(module)}"


def shell(programs: Programs) -> dict[str, Source]:
    """Debian's static busybox, and the commands of it that scripts in the lab's pods use."""
    links = {f"/usr/bin/{name}": f"{SYMLINK}busybox" for name in SHELL}
    return {"/usr/bin/busybox": programs["busybox"], **links}
