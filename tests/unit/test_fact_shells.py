"""Facts are read alike by every POSIX shell, with a hardened umask and in another language.

Each command really runs here, with the arguments of its cases in tests/facts; what it reads of this
machine is the same whichever shell reads it.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploys.engine.framed import Framed
from deploys.parts.driver.nvidia_fact import NvidiaFact
from deploys.parts.node.fact import NodeFact

FACTS = Path(__file__).resolve().parents[1] / "facts"
OTHER_SHELLS = [
    shell
    for shell in ("bash --posix", "busybox sh", "ksh", "zsh --emulate sh")
    if shutil.which(shell.split()[0])
]
# printed by a shell that cannot read a script
SHELL_ERROR = re.compile(
    r"syntax error|bad substitution|unexpected|not found: \[\[|illegal option", re.I
)


def _cases() -> list[tuple[str, type[Framed[Any]], dict[str, Any]]]:
    cases: list[tuple[str, type[Framed[Any]], dict[str, Any]]] = [
        ("NodeFact", NodeFact, {}),
        ("NvidiaFact", NvidiaFact, {}),
    ]
    for folder in sorted(FACTS.glob("*.*/")):
        module, _, name = folder.name.rpartition(".")
        fact = getattr(importlib.import_module(f"deploys.parts.{module}"), name)
        data = yaml.safe_load(sorted(folder.glob("*.yaml"))[0].read_text())
        arguments = data.get("arg", {})
        if isinstance(arguments, dict):
            cases.append((folder.name, fact, arguments))
    return cases


def read(command: str, shell: str, language: str = "en") -> tuple[int, list[str], str]:
    """A command's exit code, the kinds of its lines, and what it complains of."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/root",
        "LANG": language,
        "LC_ALL": language,
    }
    result = subprocess.run(
        [*shell.split(), "-c", command], input="", capture_output=True, text=True,
        env=environment, umask=0o77, timeout=100, errors="replace",
    )  # fmt: skip
    kinds = {re.split(r"[\t ]", line)[0] for line in result.stdout.splitlines()}
    # of a moment: numbers, and whether somebody uses the package manager
    kinds = {re.sub(r"\d+", "N", kind) for kind in kinds} - {"package_lock"}
    return result.returncode, sorted(kinds), result.stderr


@pytest.mark.skipif(not shutil.which("dash"), reason="there is no dash here")
@pytest.mark.parametrize(
    ("fact", "arguments"), [pytest.param(fact, arg, id=name) for name, fact, arg in _cases()]
)
def test_every_shell_reads_the_same(fact: type[Framed[Any]], arguments: dict[str, Any]) -> None:
    command = fact().bare_command(arguments)
    code, kinds, complaint = read(command, "dash")
    assert not SHELL_ERROR.search(complaint), complaint
    for shell in OTHER_SHELLS:
        german_output = read(command, shell, "de")
        assert not SHELL_ERROR.search(german_output[2]), f"{shell}: {german_output[2]}"
        assert german_output[:2] == (code, kinds), shell
