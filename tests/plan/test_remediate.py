"""`gpuboot remediate` through the real command line, on hosts that do not exist."""

from __future__ import annotations

import subprocess

from tests.plan.test_changes import call


def remediate(*options: str) -> subprocess.CompletedProcess[str]:
    command = ["gpuboot", "remediate", "tests/plan/inventories/site.py", *options]
    return call(command, PLAN_BREAKAGE="{}")


def test_the_leader_is_asked_and_a_silent_cluster_is_no_verdict() -> None:
    result = remediate()
    assert result.returncode == 2, result.stderr
    assert "could not be asked: there is no cluster to ask: @fake/cp1" in result.stdout
    assert result.stderr == "", "nothing is told but the answer"


def test_acting_begins_with_the_same_question_and_stdout_is_for_steps() -> None:
    result = remediate("--act", "-y")
    assert result.returncode == 2
    assert "could not be asked: there is no cluster to ask: @fake/cp1" in result.stderr
    assert "Repair GPU nodes" in result.stderr
    assert "gpu1" not in result.stderr, "nodes are reached when they are to be changed"
    assert result.stdout == ""
