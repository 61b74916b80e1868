"""What every part of the lab does on the host: run its commands, and replace files in one step."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab.state import LabError

NSPAWN_DIR = Path(__file__).parent / "nspawn"


def run(
    command: list[str], *, cwd: Path | None = None, log: Path | None = None, stdin: str = ""
) -> str:
    """Run a host command and return its output; `LabError` with its last lines when it fails."""
    result = subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
    )
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as stream:
            stream.write(f"$ {' '.join(command)}\n{result.stdout}")
    if result.returncode != 0:
        tail = "\n".join(result.stdout.strip().splitlines()[-12:])
        raise LabError(f"{' '.join(command[:3])} … failed with status {result.returncode}:\n{tail}")
    return result.stdout


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` in one step. Never writes into a hard-linked original."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
