"""pyinfra that leaves an answer at once, for commands that start it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpuboot.hosts.reading import FINDINGS, Reading
from tests.unit.site_hosts import reading

HOSTS = {"cp1": reading(11, "cp1"), "gpu1": reading(21, "gpu1", 8), "gpu2": reading(22, "gpu2", 8)}


@dataclass
class FakePyinfra:
    """pyinfra that leaves an answer. + answer: None for one that is killed before it has any"""

    answer: Reading | None = field(default_factory=lambda: Reading(hosts=HOSTS))
    output: str = ""
    code: int = 0
    commands: list[list[str]] = field(default_factory=list)
    inventories: list[str] = field(default_factory=list)

    def run(self, command: list[str], env: Mapping[str, str], **_: Any) -> Any:
        self.commands.append(command)
        if Path(command[3]).is_file():
            self.inventories.append(Path(command[3]).read_text())
        if self.answer is not None:
            Path(env[FINDINGS]).write_text(self.answer.to_json())
        return subprocess.CompletedProcess(command, self.code, self.output)


@pytest.fixture
def fake_pyinfra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePyinfra:
    """The project's folder, without its code."""
    for folder in ("deploys", "inventories", "group_data"):
        (tmp_path / folder).mkdir()
    for name in ("read_hosts", "check"):
        (tmp_path / "deploys" / f"{name}.py").touch()
    (tmp_path / "config.py").touch()
    monkeypatch.chdir(tmp_path)
    fake = FakePyinfra()
    monkeypatch.setattr("gpuboot.cli.runs.run_to_its_end", fake.run)
    return fake
