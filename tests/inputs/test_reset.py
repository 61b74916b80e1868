"""A cluster is reset by its own name only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inputs.command_line import ROOT, project, pyinfra
from tests.inputs.test_command_line import GOOD, MINE, answer

RESET = str(ROOT / "deploys" / "reset.py")
FILES = {MINE: GOOD, "group_data/mine.py": "gpuboot = {'cluster': {'name': 'prod'}}"}


@pytest.mark.parametrize("given", [[], ["yes"], ["true"], ["gpuboot"], ["prod2"]])
def test_nothing_else_resets_it(given: list[str], tmp_path: Path) -> None:
    options = ["-y", *(word for name in given for word in ("--data", f"gpuboot_reset={name}"))]
    told = answer(pyinfra(project(tmp_path, FILES), [MINE, RESET, *options]))
    assert "this resets the cluster prod (cp1, gpu1" in told
    assert "--data gpuboot_reset=prod" in told
