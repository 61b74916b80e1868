"""`gpuboot load` through the real command line, on hosts that do not exist."""

from __future__ import annotations

import subprocess

from tests.plan.test_changes import call


def load(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["gpuboot", "load", "tests/plan/inventories/site.py", "--kind", "compute", *words]
    return call(command, PLAN_BREAKAGE="{}")


def test_a_silent_cluster_is_told_and_nothing_is_loaded() -> None:
    done = load("--seconds", "60")
    assert done.returncode == 2, done.stderr
    assert "there is no cluster to ask: @fake/cp1" in done.stdout
    assert "no GPU was loaded" in done.stdout
    assert done.stderr == "compute for 60 s on free GPUs of all nodes; Ctrl-C ends it\n"


def test_a_node_without_gpus_and_a_gpu_that_nobody_has() -> None:
    done = load("--nodes", "cp1")
    assert done.returncode == 2
    assert "cp1 is no node with GPUs of this inventory" in done.stderr
    done = load("--gpu", "GPU-nobodys")
    assert done.returncode == 2
    assert "GPU-nobodys is on none of " in done.stdout
