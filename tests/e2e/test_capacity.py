"""`gpuboot capacity` in a lab: too short a history is refused, and what fits now is right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  nodeSelector: {{kubernetes.io/hostname: {node}}}
  containers:
  - name: main
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    command: [sh, -c, "sleep 3600"]
    resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""


@pytest.fixture(scope="module")
def pods(lab: Lab) -> Iterator[None]:
    """A pod that holds one of two GPUs, and one that asks for more than its node has."""
    texts = [POD.format(name="holds", node="gpu1", gpus=1),
             POD.format(name="waits", node="gpu2", gpus=5)]  # fmt: skip
    lab.kubectl("apply", "-f", "-", stdin="---".join(texts))
    lab.kubectl("wait", "--for=condition=Ready", "pod/holds", "--timeout=120s")
    yield
    lab.kubectl("delete", "pod", "holds", "waits", "--now", "--ignore-not-found")


def capacity(lab: Lab, *arguments: str) -> dict[str, Any]:
    """What it says: of a young cluster always with exit code 2."""
    result = lab.command(
        ["gpuboot", "capacity", "inventories/lab.py", "--json", *arguments], timeout=180
    )
    assert result.out, result.text
    assert result.code == 2
    document: dict[str, Any] = json.loads(result.out)
    assert document["exit_code"] == 2
    return document


def rows(document: dict[str, Any]) -> dict[str, tuple[int, int, dict[str, int]]]:
    """Held, usable and stranded by node."""
    assert document["fit"], document["fit_refusal"]
    return {node["node"]: (node["held"], node["usable"], node["stranded"])
            for node in document["fit"]["nodes"]}  # fmt: skip


SMALL = ("--cpu-per-gpu", "0.1", "--memory-per-gpu", "0.1")


def test_a_young_cluster_is_told_what_a_forecast_needs(lab: Lab, pods: None) -> None:
    document = capacity(lab, *SMALL)
    if not document["pools"]:  # no hour has ended since monitoring began
        assert document["refusal"] == "no series of demand: neither demand nor allocated"
        return
    for pool in document["pools"]:
        assert re.match(r"(\d+ hours?|[\d.]+ days) of history; 3 weeks are needed", pool["refusal"])
        assert pool["verdict"] == "unknown"
        assert any("monitoring.retention" in note for note in pool["notes"])


def test_what_fits_is_what_no_pod_holds(lab: Lab, pods: None) -> None:
    document = capacity(lab, *SMALL)
    assert rows(document) == {"gpu1": (1, 1, {}), "gpu2": (0, 4, {})}
    (largest,) = document["fit"]["largest"]
    assert (largest["pod"], largest["pods_by_size"]) == (4, {"1": 5, "2": 2, "4": 1})
    (waits,) = document["fit"]["waiting"]
    assert (waits["pod"], waits["count"]) == ("default/waits", 5)
    assert "Insufficient nvidia.com/gpu" in waits["why"]


def test_gpus_beside_too_few_cores_are_stranded(lab: Lab, pods: None) -> None:
    _, usable, stranded = rows(capacity(lab, "--cpu-per-gpu", "1000"))["gpu2"]
    assert usable == 0
    assert [re.sub(r"[\d.]+", "N", reason) for reason in stranded] == ["CPU used up (N cores left)"]
    assert list(stranded.values()) == [4]


def test_gpus_of_a_cordoned_node_are_stranded(lab: Lab, pods: None) -> None:
    lab.kubectl("cordon", "gpu2")
    try:
        assert rows(capacity(lab, *SMALL)) == {"gpu1": (1, 1, {}), "gpu2": (0, 0, {"cordoned": 4})}
    finally:
        lab.kubectl("uncordon", "gpu2")
    until(lambda: rows(capacity(lab, *SMALL))["gpu2"] == (0, 4, {}), "gpu2 to be usable again")
