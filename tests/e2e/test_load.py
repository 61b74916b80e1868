"""`gpuboot load` on simulated GPUs: what it loads moves and nothing else does; how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config.settings import Settings
from tests.e2e.conftest import ROOT, Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-load", "--gpus", "2,2")
PROFILED_AFTER_S = 420  # the means are of five minutes, the window as long
HOLDER = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: holder, namespace: default}}
spec:
  nodeSelector: {{kubernetes.io/hostname: gpu1}}
  terminationGracePeriodSeconds: 0
  containers:
  - name: holder
    image: {Settings().verify.image}
    command: [sh, -c, "nvidia-smi -L; sleep 3600"]
    resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""
FIELDS = {
    "fp32": "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "dram": "DCGM_FI_PROF_DRAM_ACTIVE",
    "sm": "DCGM_FI_PROF_SM_ACTIVE",
    "power": "DCGM_FI_DEV_POWER_USAGE",
}


@contextmanager
def loading(site: Lab, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`gpuboot load`, in a process group of its own."""
    process = subprocess.Popen(
        [Path(sys.executable).with_name("gpuboot"), "load", "inventories/lab.py", *words],
        cwd=ROOT,
        env=site.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=120)


def values(site: Lab, name: str) -> dict[str, float]:
    """What Prometheus has last of a field, by GPU."""
    samples = site.prometheus(FIELDS[name])
    return {sample["metric"]["UUID"]: float(sample["value"][1]) for sample in samples}


def busy(site: Lab, name: str = "fp32", minimum: float = 0.5) -> set[str]:
    return {gpu for gpu, value in values(site, name).items() if value > minimum}


def namespaces(site: Lab) -> list[dict[str, Any]]:
    label = "app.kubernetes.io/component=load"
    items = json.loads(site.kubectl("get", "namespaces", "-l", label, "-o", "json"))["items"]
    return [item for item in items if item["status"]["phase"] != "Terminating"]


def pods(site: Lab) -> list[dict[str, Any]]:
    label = "app.kubernetes.io/component=load"
    items: list[dict[str, Any]] = json.loads(
        site.kubectl("get", "pods", "-A", "-l", label, "-o", "json")
    )["items"]
    return items


def running(site: Lab) -> bool:
    return [pod["status"]["phase"] for pod in pods(site)] == ["Running"]


@pytest.fixture
def holder(site: Lab) -> Iterator[str]:
    """A pod on one GPU of gpu1; the GPU's UUID."""
    site.kubectl("apply", "-f", "-", stdin=HOLDER)
    log = until(lambda: "UUID" in (text := logs(site)) and text, "the pod that holds a GPU")
    yield log.partition("UUID: ")[2].partition(")")[0]
    site.kubectl("delete", "pod", "holder", "--wait=true")


def logs(site: Lab) -> str:
    result = site.lab("kubectl", "--name", site.name, "logs", "holder")
    return result.out if result.code == 0 else ""


def test_a_free_gpu_moves_and_no_other_and_all_ends_with_the_command(
    site: Lab, holder: str
) -> None:
    words = ("--nodes", "gpu1", "--kind", "compute", "--seconds", "120")
    with loading(site, *words) as process:
        moved = until(lambda: busy(site), "a GPU that computes", 240)
        assert len(moved) == 1
        assert holder not in moved
        power = values(site, "power")
        assert all((power[gpu] > 300) is (gpu in moved) for gpu in power), power
        [pod] = pods(site)
        assert pod["spec"]["activeDeadlineSeconds"] == 600 + 120 + 60
        assert "gpuboot.io/unproven" not in json.dumps(pod["spec"]["tolerations"])
        out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    [gpu] = moved
    assert f"gpu1 {gpu}: " in out
    assert "gflops" in out
    assert "by dcgmproftester13" in out
    assert "SIMULATED" in out
    assert not namespaces(site)
    until(lambda: not busy(site), "no load any more")


def test_a_gpu_that_is_held_is_left_alone(site: Lab, holder: str) -> None:
    words = ("--gpu", holder, "--kind", "memory", "--seconds", "30")
    with loading(site, *words) as process:
        out, _ = process.communicate(timeout=300)
    assert process.returncode == 2, out
    assert f"{holder} is none of its free GPUs: a pod holds it" in out
    site.kubectl("cordon", "gpu2")
    with loading(site, "--nodes", "gpu2", "--kind", "memory") as process:
        out, _ = process.communicate(timeout=300)
    site.kubectl("uncordon", "gpu2")
    assert process.returncode == 2, out
    assert "gpu2: not loaded: the node is cordoned" in out


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_it_and_nothing_is_left(site: Lab, name: str) -> None:
    with loading(site, "--nodes", "gpu2", "--kind", "compute", "--seconds", "900") as process:
        until(lambda: running(site), "a pod that runs", 240)
        process.send_signal(signal.Signals[name])
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.Signals[name], out
    assert "ended before its time" in out
    assert not namespaces(site)
    assert not pods(site)


def test_a_command_that_is_killed_leaves_nothing_behind(site: Lab) -> None:
    """What it started notices, and removes the pods."""
    with loading(site, "--nodes", "gpu2", "--kind", "compute", "--seconds", "900") as process:
        until(lambda: running(site), "a pod that runs", 240)
        process.kill()
        until(lambda: not pods(site) and not namespaces(site), "no pod any more", 60)


def test_what_a_killed_machine_leaves_ends_by_itself(site: Lab) -> None:
    words = ("--nodes", "gpu2", "--gpus", "1", "--kind", "memory", "--seconds", "40")
    with loading(site, *words) as process:
        until(lambda: running(site), "a pod that runs", 240)
        os.killpg(process.pid, signal.SIGKILL)
        until(lambda: busy(site, "dram"), "its load", 60)
    until(
        lambda: {pod["status"]["phase"] for pod in pods(site)} <= {"Succeeded", "Failed"},
        "the end of its pod",
        120,
    )
    until(lambda: not busy(site, "dram"), "no load any more")
    [leftover] = namespaces(site)
    note = f"gpuboot.io/ends={int(time.time())}"
    site.kubectl("annotate", "--overwrite", "namespace", leftover["metadata"]["name"], note)
    with loading(site, "--nodes", "gpu2", "--kind", "transfer", "--seconds", "10") as process:
        out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    assert "removing what a killed load has left" in out
    assert not namespaces(site)


def test_profile_names_each_kind_of_load(site: Lab) -> None:
    seconds = ("--seconds", str(PROFILED_AFTER_S + 240))
    with (
        loading(site, "--nodes", "gpu1", "--gpus", "1", "--kind", "compute", *seconds),
        loading(site, "--nodes", "gpu1", "--gpus", "1", "--kind", "transfer", *seconds),
        loading(site, "--nodes", "gpu2", "--gpus", "1", "--kind", "memory", *seconds),
    ):
        until(lambda: busy(site) and busy(site, "dram"), "all loads", 240)
        time.sleep(PROFILED_AFTER_S)
        classified = {node: classes(site, node) for node in ("gpu1", "gpu2")}
    assert {node: sorted(names) for node, names in classified.items()} == {
        "gpu1": ["compute_bound", "pcie_bound"],
        "gpu2": ["idle", "memory_bound"],
    }, classified


def classes(site: Lab, node: str) -> dict[str, Any]:
    """What `gpuboot profile` says of a node's GPUs: class -> by what."""
    result = site.command(
        ["gpuboot", "profile", "inventories/lab.py", "node", node, "--window", "5", "--json"]
    )
    assert result.code in (0, 2), result.details
    return {gpu["class"]: gpu["evidence"] for gpu in json.loads(result.out)["gpus"]}
