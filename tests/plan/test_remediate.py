"""`gpuboot remediate` through the real command line, on hosts that do not exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def remediate(*options: str) -> subprocess.CompletedProcess[str]:
    gpuboot = str(Path(sys.executable).with_name("gpuboot"))
    return subprocess.run(
        [gpuboot, "remediate", "tests/plan/inventories/site.py", *options],
        cwd=ROOT,
        env={**os.environ, "PLAN_BREAKAGE": "{}", "PLAN_SETTINGS": "{}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_leader_is_asked_and_a_silent_cluster_is_no_verdict() -> None:
    done = remediate()
    assert done.returncode == 2, done.stderr
    assert "could not be asked: there is no cluster to ask: @fake/cp1" in done.stdout
    assert done.stderr == "", "nothing is told but the answer"


def test_acting_begins_with_the_same_question_and_stdout_is_for_steps() -> None:
    done = remediate("--act", "-y")
    assert done.returncode == 2
    assert "could not be asked: there is no cluster to ask: @fake/cp1" in done.stderr
    assert "Repair GPU nodes" in done.stderr
    assert "gpu1" not in done.stderr, "nodes are reached when they are to be changed"
    assert done.stdout == ""
