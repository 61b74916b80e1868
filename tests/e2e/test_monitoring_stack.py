"""What monitoring keeps, shows and answers: volumes, node ports, annotations, `gpuboot query`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from lab.settings import home
from tests.e2e.conftest import Lab, until

pytestmark = pytest.mark.lab

PODS = """
apiVersion: v1
kind: Pod
metadata: {{name: busy, namespace: default}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  nodeSelector: {{kubernetes.io/hostname: gpu1}}
  containers:
  - name: main
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    command: [sh, -c, "sleep 3600"]
    resources: {{limits: {{nvidia.com/gpu: 1}}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: gpuless
  namespace: default
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: {exporter}
    args: ["--web.listen-address=:9111", "--collector.disable-defaults"]
"""


def items(lab: Lab, *arguments: str) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = json.loads(lab.kubectl("get", *arguments, "-o", "json"))[
        "items"
    ]
    return objects


@pytest.fixture(scope="module")
def pods(lab: Lab) -> Iterator[None]:
    """A pod that holds a GPU, and one that asks for none."""
    [exporter] = items(
        lab, "ds", "-n", "monitoring", "-l", "app.kubernetes.io/name=prometheus-node-exporter"
    )
    image = exporter["spec"]["template"]["spec"]["containers"][0]["image"]
    lab.ssh("cp1", f"cat > /root/pods.yaml <<'EOF'\n{PODS.format(exporter=image)}\nEOF\n")
    lab.kubectl("apply", "-f", "/root/pods.yaml")
    yield
    lab.kubectl("delete", "-f", "/root/pods.yaml", "--now", "--ignore-not-found")


def query(lab: Lab, *arguments: str) -> tuple[int, dict[str, Any]]:
    """`gpuboot query … --json`: exit code and answer."""
    result = lab.command(
        ["gpuboot", "query", "inventories/lab.py", *arguments, "--json"], timeout=120
    )
    assert result.out, result.text
    return result.code, json.loads(result.out)


def test_data_are_on_volumes(lab: Lab) -> None:
    claims = items(lab, "pvc", "-n", "monitoring")
    assert {claim["status"]["phase"] for claim in claims} == {"Bound"}
    names = sorted(claim["metadata"]["name"].split("-")[0] for claim in claims)
    assert names == ["alertmanager", "prometheus"]
    [local] = items(lab, "storageclass")
    assert local["metadata"]["name"] == "local-path"
    mark = "storageclass.kubernetes.io/is-default-class"
    assert local["metadata"]["annotations"][mark] == "true"


def test_a_pod_that_holds_a_gpu_is_answered_for(lab: Lab, pods: None) -> None:
    def query_pod() -> dict[str, Any] | None:
        code, answer = query(lab, "pod", "busy")
        return answer if code == 0 else None

    answer = until(query_pod, "gpuboot query pod busy")
    [uuid] = answer["gpus"]
    for value in answer["values"].values():
        assert 0 <= value["value"] <= 1
        assert value["age_s"] <= 10
        assert 'pod="busy"' in value["source"]
    code, repeated_answer = query(lab, "gpu", uuid)
    assert (code, repeated_answer["gpus"]) == (0, [uuid])
    code, space = query(lab, "namespace", "default")
    assert (code, space["gpus"]) == (0, [uuid])


def test_what_is_not_known_is_not_made_up(lab: Lab, pods: None) -> None:
    until(lambda: lab.prometheus('kube_pod_info{pod="gpuless"}'), "kube_pod_info")
    for arguments, reason in (
        (("pod", "gpuless"), "no GPU was asked for"),
        (("pod", "nobody"), "knows no pod nobody in namespace default"),
        (("gpu", "GPU-none"), "has this UUID"),
    ):
        code, answer = query(lab, *arguments)
        assert code == 2
        for value in answer["values"].values():
            assert value["value"] is None
            assert reason in value["reason"]


def test_ports_and_policies_are_settings(lab: Lab, pods: None) -> None:
    monitoring = {"node_ports": {"prometheus": 30090}, "network_policies": True}
    fields = {"counters": ["DCGM_FI_DEV_FB_TOTAL"]}
    settings = {"monitoring": monitoring, "alerts": {"enabled": False}, "exporter": fields}
    result = lab.deploy(settings=settings)  # it verifies: also that exporters collect these fields
    assert result.applied, result.details
    assert len(lab.prometheus("DCGM_FI_DEV_FB_TOTAL")) == 6
    machines = json.loads((home(lab.name) / "lab.json").read_text())["machines"]
    for machine in machines:  # a node port is open on every node, whichever runs the pod
        url = f"http://{machine['address']}:30090/-/ready"
        with urlopen(url, timeout=20) as answer:
            assert answer.status == 200
    [rule] = items(lab, "prometheusrules", "-A", "-l", "app.kubernetes.io/managed-by=gpuboot")
    rules = [rule for group in rule["spec"]["groups"] for rule in group["rules"]]
    assert rules
    assert not [rule for rule in rules if "alert" in rule]
    assert items(lab, "networkpolicies", "-A", "-l", "app.kubernetes.io/managed-by=gpuboot")
    twice = 'count by (__name__, node) (up{job=~".*dcgm-exporter"}) > 1'
    assert lab.prometheus(twice) == []


def test_what_is_no_longer_wanted_goes(lab: Lab) -> None:
    result = lab.deploy()
    assert result.applied, result.details
    assert not items(lab, "networkpolicies", "-A", "-l", "app.kubernetes.io/managed-by=gpuboot")
    [rule] = items(lab, "prometheusrules", "-A", "-l", "app.kubernetes.io/managed-by=gpuboot")
    assert rule["metadata"]["name"] == "gpuboot"
    [service] = items(lab, "svc", "-n", "monitoring", "-l", "app=kube-prometheus-stack-prometheus")
    assert service["spec"]["type"] == "ClusterIP"
