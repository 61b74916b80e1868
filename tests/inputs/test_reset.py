"""A cluster is reset by its own name only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inputs.command_line import ROOT, project, pyinfra
from tests.inputs.test_command_line import answer
from tests.inputs.wrong_inventories import GOOD, INVENTORY

RESET = str(ROOT / "deploys" / "reset.py")
FILES = {INVENTORY: GOOD, "group_data/mine.py": "gpuboot = {'cluster': {'name': 'prod'}}"}


@pytest.mark.parametrize("supplied_names", [[], ["yes"], ["true"], ["gpuboot"], ["prod2"]])
def test_nothing_else_resets_it(supplied_names: list[str], tmp_path: Path) -> None:
    options = [
        "-y",
        *(word for name in supplied_names for word in ("--data", f"gpuboot_reset={name}")),
    ]
    output = answer(pyinfra(project(tmp_path, FILES), [INVENTORY, RESET, *options]))
    assert "this resets the cluster prod (cp1, gpu1" in output
    assert "--data gpuboot_reset=prod" in output
