"""A newer patch release of Kubernetes by one changed line, under a pod that stays where it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-patch", "--gpus", "1", "--previous-patch")

SERVED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: serve
        image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
        command: [sleep, "36000"]
"""


def served(lab: Lab) -> list[tuple[str, int]]:
    """Pods of the Deployment, and how often each was started again."""
    pods = json.loads(lab.kubectl("get", "pods", "-l", "app=serve", "-o", "json"))["items"]
    return [
        (pod["metadata"]["uid"], status["restartCount"])
        for pod in pods
        for status in pod["status"]["containerStatuses"]
    ]


def test_the_plan_names_one_patch_release_and_no_drain(site: Lab, lock: dict[str, Any]) -> None:
    earlier = lock["previous_patch"]["versions"]["kubernetes"]["version"]
    assert site.versions() == {"kubelet": {f"v{earlier}"}, "images": {f"v{earlier}"}}
    plan = site.dry()
    assert plan.code == 0, plan.details
    today = lock["versions"]["kubernetes"]["version"]
    assert f"control plane: Kubernetes {earlier} → {today}" in plan.text
    assert "its pods are moved to other nodes" not in plan.text


def test_one_changed_line_upgrades_the_cluster_and_moves_no_pod(
    site: Lab, lock: dict[str, Any]
) -> None:
    site.kubectl("apply", "-f", "-", stdin=SERVED)
    site.kubectl("rollout", "status", "deployment/serve", "--timeout=120s")
    before = served(site)
    result = site.deploy()
    assert result.code == 0, result.details
    assert "proven" in result.text
    today = f"v{lock['versions']['kubernetes']['version']}"
    assert site.versions() == {"kubelet": {today}, "images": {today}}
    assert served(site) == before
    assert site.snapshot()["ready"] == {"cp1": ["True"], "gpu1": ["True"]}
    assert site.deploy("--json").changes == []
