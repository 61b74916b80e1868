"""`gpuboot remediate` through the real command line, on hosts that do not exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_leader_is_asked_and_a_silent_cluster_is_no_verdict() -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("gpuboot")),
            "remediate",
            "tests/plan/inventories/site.py",
        ],
        cwd=ROOT,
        env={**os.environ, "PLAN_BREAKAGE": "{}", "PLAN_SETTINGS": "{}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "could not be asked: there is no cluster to ask: @fake/cp1" in done.stdout
    assert done.stderr == "", "nothing is told but the answer"
