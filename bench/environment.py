"""What the benchmark needs beside gpuboot: Ansible, Mitogen, matplotlib, in an environment apart.

Installed from bench/requirements.lock on first use, into the lab's cache.
"""

from __future__ import annotations

import shutil
import sys
from functools import cache
from pathlib import Path

from lab.build.store import digest
from lab.host import run
from lab.state import LabError, cache_dir

LOCK = Path(__file__).with_name("requirements.lock")


@cache
def folder() -> Path:
    """The environment; made when what the lock says is not there yet."""
    target = cache_dir() / "bench" / digest(sys.version, LOCK)
    if not (target / "complete").exists():
        if target.exists():
            shutil.rmtree(target)
        print(f"bench: installing {LOCK.name} into {target}", file=sys.stderr)
        run([sys.executable, "-m", "venv", str(target)])
        pip = [str(target / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install"]
        run([*pip, "--quiet", "--require-hashes", "--requirement", str(LOCK)])
        (target / "complete").touch()
    return target


def program(name: str) -> Path:
    """A program of the environment. Raises `LabError` when it has none of that name."""
    path = folder() / "bin" / name
    if not path.exists():
        raise LabError(f"{path} is missing: {LOCK} does not lead to it")
    return path


def versions() -> dict[str, str]:
    """Name -> version of every package that the lock pins."""
    pinned = (line.split(" ")[0] for line in LOCK.read_text().splitlines() if "==" in line)
    return dict(pin.split("==", 1) for pin in pinned if not pin.startswith("#"))
