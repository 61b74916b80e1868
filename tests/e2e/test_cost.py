"""`gpuboot cost` in a lab: real pods of some minutes are named, every GPU hour is somewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

HELD_FOR_S = 240
SPAN = "8m"
SETTINGS = {"cost": {"currency": "EUR", "gpu_hour": {"*": 2.0}}}
OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: billed, labels: {team: research}}
---
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: billed}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: gpu1}
  containers:
  - name: main
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    command: [sh, -c, "sleep 3600"]
    resources: {limits: {nvidia.com/gpu: 2}}
"""


@pytest.fixture(scope="module")
def held_gpus(lab: Lab) -> Iterator[None]:
    """A pod held two GPUs of gpu1 for some minutes, and gpu2 was cordoned meanwhile."""
    lab.kubectl("apply", "-f", "-", stdin=OBJECTS)
    try:
        lab.kubectl("cordon", "gpu2")
        until(
            lambda: lab.prometheus('namespace_pod:gpu_requested:sum{namespace="billed"}'),
            "the pod's GPUs in Prometheus",
        )
        time.sleep(HELD_FOR_S)
        yield
    finally:
        lab.kubectl("uncordon", "gpu2")
        lab.kubectl("delete", "namespace", "billed", "--now")


def cost(lab: Lab, *arguments: str) -> dict[str, Any]:
    command = ["gpuboot", "cost", *arguments, "--format", "json"]
    result = lab.command(command, timeout=120, settings=SETTINGS)
    assert result.code == 0, result.text
    document: dict[str, Any] = json.loads(result.out)
    return document


def test_the_report_names_pods_and_adds_up(lab: Lab, held_gpus: None, tmp_path: Path) -> None:
    answers_file = tmp_path / "answers.json"
    report = cost(lab, "inventories/lab.py", "--since", SPAN, "--by", "team,namespace,pod",
                 "--save", str(answers_file))  # fmt: skip
    rows = {(row["team"], row["namespace"], row["pod"]): row for row in report["rows"]}
    row = rows["research", "billed", "holder"]
    hours = 2 * HELD_FOR_S / 3600
    assert row["gpu_hours"] == pytest.approx(hours, abs=2 * 120 / 3600)
    assert row["gpu_cost"] == pytest.approx(2 * row["gpu_hours"])
    assert row["used_gpu_hours"] + row["idle_gpu_hours"] + row["unmeasured_gpu_hours"] == (
        pytest.approx(row["gpu_hours"])
    )
    assert row["energy_kwh"] > 0
    assert all(abs(entry["difference"]) < 1e-6 for entry in report["conservation"])
    expected = sum(float(entry["value"][1]) for entry in lab.prometheus("node:gpu_expected:count"))
    total = report["conservation"][-1]
    assert total["installed_gpu_hours"] == pytest.approx(expected * 8 / 60)
    assert report["reasons"]["closed"] > 0
    replayed = cost(lab, str(answers_file), "--by", "team,namespace,pod")
    assert replayed["rows"] == report["rows"]


def test_a_time_that_prometheus_has_forgotten(lab: Lab) -> None:
    command = ["gpuboot", "cost", "inventories/lab.py", "--since", "900d"]
    result = lab.command(command, timeout=120, settings=SETTINGS)
    assert result.code == 2
    assert "Prometheus keeps" in result.err
    assert "remedy: --since" in result.err
