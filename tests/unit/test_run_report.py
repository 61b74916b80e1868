"""run.json, written by a real pyinfra run on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = """
import os
from pyinfra.context import state
from pyinfra.api.deploy import deploy
from pyinfra.operations import files, server
from deploys.run_report import watch
from gpuboot.settings import load

watch(state, load({"cluster": {"name": "t"}}))

@deploy("Base")
def base():
    server.shell(name="Change something", commands=["true"])
    files.directory(name="There already", path="/tmp")

@deploy("Drivers")
def drivers():
    server.shell(name="Do what LAST says", commands=["LAST".replace("PID", str(os.getpid()))])
    server.shell(name="Come after it", commands=["true"])

base()
drivers()
"""


def run(folder: Path, last: str, *arguments: str) -> tuple[int, dict[str, Any] | None]:
    (folder / "site.py").write_text(DEPLOY.replace("LAST", last))
    (folder / "inventory.py").write_text("hosts = ['@local']\n")
    done = subprocess.run(
        [sys.executable, "-m", "pyinfra", "inventory.py", "site.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    path = folder / "reports/latest/run.json"
    return done.returncode, json.loads(path.read_text()) if path.exists() else None


def test_a_run_that_ends_well(tmp_path: Path) -> None:
    code, noted = run(tmp_path, "true", "-y")
    assert noted is not None
    assert (code, noted["exit"]) == (0, 0)
    assert [(phase["name"], phase["operations"]) for phase in noted["phases"]] == [
        ("Base", 2),
        ("Drivers", 2),
    ]
    assert noted["hosts"]["@local"] == {
        "changed": [
            "Base | Change something",
            "Drivers | Do what true says",
            "Drivers | Come after it",
        ],
        "failed": [],
        "retries": 0,
    }
    assert noted["versions"]["kubernetes"]["version"]
    assert 0 < sum(phase["seconds"] for phase in noted["phases"]) <= noted["seconds"]


def test_a_run_that_fails_half_way_is_noted_too(tmp_path: Path) -> None:
    code, noted = run(tmp_path, "false", "-y")
    assert noted is not None
    assert (code, noted["exit"]) == (1, 1)
    assert noted["hosts"]["@local"]["failed"] == ["Drivers | Do what false says"]
    assert noted["hosts"]["@local"]["changed"] == ["Base | Change something"]


def test_a_run_that_is_killed_has_left_its_notes(tmp_path: Path) -> None:
    code, noted = run(tmp_path, "kill -9 PID", "-y")
    assert noted is not None
    assert (code, noted["exit"]) == (-9, 1)
    assert noted["hosts"]["@local"]["changed"] == ["Base | Change something"]


@pytest.mark.parametrize("arguments", [("--dry",)])
def test_a_run_that_executes_nothing_leaves_nothing(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    code, noted = run(tmp_path, "true", *arguments)
    assert (code, noted) == (0, None)
    assert not (tmp_path / "reports").exists()
