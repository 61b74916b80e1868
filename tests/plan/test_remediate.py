"""`gpuboot remediate` through the real command line, on hosts that do not exist."""

from __future__ import annotations

import subprocess

from tests.plan.test_changes import call


def remediate(*options: str) -> subprocess.CompletedProcess[str]:
    command = ["gpuboot", "remediate", "tests/plan/inventories/site.py", *options]
    return call(command, PLAN_BREAKAGE="{}")


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
