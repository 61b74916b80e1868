"""The real command line in a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fork_server import run_pyinfra

ROOT = Path(__file__).resolve().parents[2]
WORD = "hunter2"  # a secret that must be in no output


@dataclass(frozen=True)
class Completed:
    """How a run ended: exit code, and everything it printed."""

    code: int
    output: str


def project(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder as a person has it: what comes with gpuboot, and these files."""
    shutil.copy(ROOT / "config.py", folder)
    for name in ("inventories", "group_data"):
        (folder / name).mkdir(exist_ok=True)
    shutil.copy(ROOT / "group_data" / "all.py", folder / "group_data")
    shutil.copy(ROOT / "inventories" / "example.py", folder / "inventories")
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def pyinfra(folder: Path, arguments: Sequence[str], answers: str = "") -> Completed:
    """`pyinfra ARGUMENTS` in this folder, without a terminal. + answers: its standard input"""
    result = run_pyinfra(arguments, folder, answers=answers, merged=True)
    return Completed(result.returncode, result.stdout)
