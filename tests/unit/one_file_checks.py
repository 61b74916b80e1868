"""Cases of checks that are one file: YAML, a file for each check, for hosts and for the cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documents import ROOT

KINDS = {"good", "bad", "truncated", "empty", "other version"}


def cases(folder: Path, check: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((folder / f"{check.link.name}.yaml").read_text())
    return entries


def parameters(checks: Iterable[Any], folder: Path) -> list[Any]:
    """Every check with each of its cases, by name."""
    return [
        pytest.param(check, case, id=f"{check.link.name}: {case['name']}")
        for check in checks
        for case in cases(folder, check)
    ]


def file_names(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.yaml")}


def run_check_script(folder: Path, module: str, check: str, script: str) -> dict[str, Any]:
    """The JSON that a script prints, in a process of its own: the links of this one are known.

    + folder: gets the file of a new check, and is the script's argument
    + module, check: the file's name and content
    """
    (folder / f"{module}.py").write_text(check)
    result = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=ROOT, text=True, capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    output: dict[str, Any] = json.loads(result.stdout)
    return output
