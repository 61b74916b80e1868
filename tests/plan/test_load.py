"""`gpuboot load` through the real command line, on hosts that do not exist."""

from __future__ import annotations

import subprocess

from tests.plan.test_changes import call


def load(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["gpuboot", "load", "tests/plan/inventories/site.py", "--kind", "compute", *words]
    return call(command, PLAN_BREAKAGE="{}")


def test_a_silent_cluster_is_told_and_nothing_is_loaded() -> None:
    result = load("--seconds", "60")
    assert result.returncode == 2, result.stderr
    assert "there is no cluster to ask: @fake/cp1" in result.stdout
    assert "no GPU was loaded" in result.stdout
    assert result.stderr == "compute for 60 s on free GPUs of all nodes; Ctrl-C ends it\n"


def test_a_node_without_gpus_and_a_gpu_that_nobody_has() -> None:
    result = load("--nodes", "cp1")
    assert result.returncode == 2
    assert "cp1 is no node with GPUs of this inventory" in result.stderr
    result = load("--gpu", "GPU-nobodys")
    assert result.returncode == 2
    assert "GPU-nobodys is on none of " in result.stdout
