"""A newer minor release of Kubernetes by one changed line, under a pod that is at work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Lab, assert_refused

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-kubernetes", "--gpus", "2,2", "--previous-release")

# two replicas, one of which may be away: a drain has to wait for the budget
SERVED = """
apiVersion: v1
kind: Namespace
metadata: {name: ml}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: ml}
spec:
  replicas: 2
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: serve
        image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
        command: [bash, -c, "while :; do /cuda-samples/vectorAdd; sleep 1; done"]
        resources: {limits: {nvidia.com/gpu: 1}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: serve, namespace: ml}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: serve}}
"""


@pytest.fixture(scope="module")
def older(site: Lab) -> Lab:
    """A control plane and two GPU nodes with an earlier Kubernetes, and pods on their GPUs."""
    site.kubectl("apply", "-f", "-", stdin=SERVED)
    site.kubectl("-n", "ml", "rollout", "status", "deployment/serve", "--timeout=120s")
    site.kubectl("create", "configmap", "kept", "--from-literal=by=etcd")
    return site


def is_held(lab: Lab) -> bool:
    """Whether no upgrade but gpuboot's changes the packages of Kubernetes."""
    names = {"cri-tools", "kubeadm", "kubectl", "kubelet", "kubernetes-cni"}
    return names <= set(lab.ssh("gpu1", "apt-mark showhold").split())


def with_kubernetes(lock: dict[str, Any], version: str) -> dict[str, Any]:
    """Settings in which one line has changed."""
    versions = lock["versions"] | {"kubernetes": lock["versions"]["kubernetes"] | {
        "version": version, "minor": version.rpartition(".")[0]
    }}  # fmt: skip
    return {"versions": versions, "driver": lock["previous"]["driver"]}


def only_kubernetes(lock: dict[str, Any]) -> dict[str, Any]:
    """Settings with today's Kubernetes, and the driver that is there."""
    return with_kubernetes(lock, lock["versions"]["kubernetes"]["version"])


def test_the_programs_are_those_of_the_earlier_release(older: Lab, lock: dict[str, Any]) -> None:
    earlier = f"v{lock['previous']['versions']['kubernetes']['version']}"
    assert older.versions() == {"kubelet": {earlier}, "images": {earlier}}
    assert json.loads(older.kubectl("get", "--raw", "/version"))["gitVersion"] == earlier


@pytest.mark.parametrize("dry", [["--dry"], ["-y"]])
@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.34.4", "a control plane cannot go back to an earlier release"),
        ("1.38.0", "an upgrade may not skip 1.37"),
    ],
)
def test_what_may_not_be_is_refused_before_anything_is_touched(
    older: Lab, lock: dict[str, Any], version: str, message: str, dry: list[str]
) -> None:
    settings = with_kubernetes(lock, version)
    operator = settings["versions"]["charts"]["gpu-operator"]
    # one that says nothing of Kubernetes, so that the cluster has to
    settings["versions"]["charts"] = settings["versions"]["charts"] | {
        "gpu-operator": operator | {"version": "v99.1.0"}
    }
    before = older.snapshot()
    result = older.command(
        ["pyinfra", "inventories/lab.py", "deploys/site.py", *dry], settings=settings
    )
    assert_refused(
        result, "1 problem; nothing was changed", message, f"the version lock asks for {version}"
    )
    assert older.snapshot() == before
    assert is_held(older)


def test_the_plan_tells_what_an_upgrade_changes(older: Lab, lock: dict[str, Any]) -> None:
    plan = older.dry(settings=only_kubernetes(lock))
    assert plan.code == 0, plan.details
    for part in ("1.36.3", "1.37.2", "etcd", "3.6.8-0", "3.7.0-0", "CoreDNS", "node gpu1"):
        assert part in plan.text, plan.details
    assert older.versions()["kubelet"] == {"v1.36.3"}


def test_one_changed_line_upgrades_the_cluster(older: Lab, lock: dict[str, Any]) -> None:
    today = f"v{lock['versions']['kubernetes']['version']}"
    older.kubectl("cordon", "cp1")  # a person's cordon, which stays
    result = older.deploy(settings=only_kubernetes(lock))
    assert result.applied, result.details
    # all is proven but GPUs that the pods hold, which is no failure
    findings = json.loads((older.reports / "latest/verify.json").read_text())["findings"]
    open_ = {item["link"]: item["detail"] for item in findings if item["status"] != "pass"}
    assert all("held by ml/serve-" in text for text in open_.values()), open_
    assert set(open_) <= {"workload"}
    assert "draining gpu1" in result.text
    assert older.versions() == {"kubelet": {today}, "images": {today}}
    assert older.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.by}") == "etcd"
    unschedulable = (
        "get",
        "nodes",
        "-o",
        "jsonpath={.items[?(@.spec.unschedulable)].metadata.name}",
    )
    assert older.kubectl(*unschedulable) == "cp1"
    older.kubectl("uncordon", "cp1")
    older.kubectl("-n", "ml", "rollout", "status", "deployment/serve", "--timeout=120s")
    assert is_held(older)


def test_then_there_is_nothing_to_do(older: Lab, lock: dict[str, Any]) -> None:
    result = older.deploy("--json", settings=only_kubernetes(lock))
    assert result.changes == []
