"""The real command line in a folder of its own, in a fork: without the second that imports take."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import deploys.run.context

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
    output = folder / "output"
    (folder / "input").write_text(answers)
    child = os.fork()
    if not child:
        _run(folder, output, arguments)
    _, status = os.waitpid(child, 0)
    return Completed(os.waitstatus_to_exitcode(status), output.read_text())


def _run(folder: Path, output: Path, arguments: Sequence[str]) -> NoReturn:
    code = 70
    try:
        os.chdir(folder)
        sys.stdin = open(folder / "input")  # noqa: SIM115  for the rest of the process
        sys.stdout = sys.stderr = open(output, "w")  # noqa: SIM115
        for number, file in enumerate((sys.stdin, sys.stdout, sys.stderr)):
            os.dup2(file.fileno(), number)
        sys.argv = ["pyinfra", *arguments]
        deploys.run.context._run = deploys.run.context._failure = None
        from pyinfra_cli.main import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
