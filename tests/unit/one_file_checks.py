"""Cases of checks that are one file: YAML, a file for each check, for hosts and for the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

KINDS = {"good", "bad", "truncated", "empty", "other version"}


def cases(folder: Path, check: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((folder / f"{check.link.name}.yaml").read_text())
    return found


def parameters(checks: Iterable[Any], folder: Path) -> list[Any]:
    """Every check with each of its cases, by name."""
    return [
        pytest.param(check, case, id=f"{check.link.name}: {case['name']}")
        for check in checks
        for case in cases(folder, check)
    ]


def file_names(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.yaml")}
