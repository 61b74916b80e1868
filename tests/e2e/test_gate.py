"""The gate: no pod gets a GPU on a node that is not proven, be it new or rebooted by itself."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from gpuboot.cluster import node_gate
from gpuboot.cluster.objects import Node, parse_node
from tests.e2e.conftest import Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-gate", "--gpus", "1,1", "--no-deploy")
ON = {
    "gate": {"enabled": True},
    "alerts": {"rules": {"GPUNodeUnproven": {"hold_for": "5s"}}},
}
OFF = {**ON, "gate": {"enabled": False}}
ALERT = 'ALERTS{alertname="GPUNodeUnproven", alertstate="firing"}'

# a card that computes wrong, whenever its driver was loaded
BREAKS = """
cat > /etc/systemd/system/gpu-breaks.service <<'UNIT'
[Service]
ExecStart=/bin/sh -c 'while :; do gpu-sim set 0 cuda_wrong 1; sleep 1; done'
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload && systemctl enable --now gpu-breaks.service
"""
MENDED = "systemctl disable --now gpu-breaks.service && gpu-sim clear"
# a Deployment's pod that wants a GPU of one node, and tolerates nothing
TRAIN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: train-NODE, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: train-NODE}}
  template:
    metadata: {labels: {app: train-NODE}}
    spec:
      nodeSelector: {kubernetes.io/hostname: NODE}
      terminationGracePeriodSeconds: 0
      containers:
      - name: train
        image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
        command: [bash, -c, "while :; do /cuda-samples/vectorAdd; sleep 1; done"]
        resources: {limits: {nvidia.com/gpu: 1}}
"""
# What of a node and its pods can be seen from the leader, four times a second
WATCH = """
cat > /run/watch.sh <<'END'
export KUBECONFIG=/etc/kubernetes/admin.conf
while :; do
  condition='{.status.conditions[?(@.type=="Ready")].status}'
  proven='{.status.conditions[?(@.type=="GPUsProven")].status}'
  offers='{.status.allocatable.nvidia\\.com/gpu}'
  node="$condition|{.spec.unschedulable}|{.spec.taints[*].key}|$proven|$offers"
  node=$(kubectl get node gpu1 -o jsonpath="$node")
  phases='{range .items[*]}{.status.phase}/{.status.reason} {end}'
  pods=$(kubectl get pods -l app=train-gpu1 -o jsonpath="$phases")
  echo "$(date +%T.%N | cut -c 1-12)|$node|$pods"
  sleep 0.2
done
END
systemctl stop watch 2>/dev/null; systemctl reset-failed watch 2>/dev/null
systemd-run --unit=watch --collect sh -c 'sh /run/watch.sh > /run/watched'
"""


@pytest.fixture(scope="module")
def gated_site(site: Lab) -> Lab:
    """A control plane and two GPU nodes on bare machines; the GPU of gpu2 computes wrong."""
    site.ssh("gpu2", BREAKS)
    return Lab(site.name, ON)


def node(lab: Lab, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lab.kubectl("get", "node", name, "-o", "json"))
    return document


def state(lab: Lab, name: str) -> Node:
    return parse_node(node(lab, name))


def marks(state: Node) -> tuple[bool, bool, bool]:
    """Whether a node is proven, closed, and has cordoned itself at its boot."""
    return (
        node_gate.is_proven(state),
        state.has_taint(node_gate.KEY),
        node_gate.CORDON in state.annotations,
    )


def condition(lab: Lab, name: str) -> dict[str, str]:
    conditions = node(lab, name)["status"]["conditions"]
    [match] = [item for item in conditions if item["type"] == node_gate.CONDITION]
    return dict(match)


def pods(lab: Lab, name: str) -> list[dict[str, Any]]:
    output = lab.kubectl("get", "pods", "-l", f"app=train-{name}", "-o", "json")
    items: list[dict[str, Any]] = json.loads(output)["items"]
    return items


def running(lab: Lab, name: str) -> list[str]:
    """When containers of the node's pods started that run."""
    return [
        container["state"]["running"]["startedAt"]
        for pod in pods(lab, name)
        for container in pod["status"].get("containerStatuses", [])
        if "running" in container["state"]
    ]


def test_a_new_node_is_open_when_it_is_proven_and_a_bad_one_stays_closed(gated_site: Lab) -> None:
    result = gated_site.deploy()
    assert result.code == 1, result.details
    assert "vectorAdd" in result.text
    good, bad = state(gated_site, "gpu1"), state(gated_site, "gpu2")
    assert marks(good) == (True, False, False), good
    assert marks(bad) == (False, True, False), bad
    gate_condition = condition(gated_site, "gpu2")
    assert (gate_condition["status"], gate_condition["reason"]) == ("False", "VerifyFailed"), (
        gate_condition
    )
    assert "verification failed" in gate_condition["message"], gate_condition
    proof = node(gated_site, "gpu1")["metadata"]["annotations"]
    assert proof["gpuboot.io/proven-level"] == "standard"
    assert proof["gpuboot.io/proven-gpus"].startswith("GPU-")
    print(json.dumps({key: value for key, value in proof.items() if "proven" in key}, indent=1))
    print(json.dumps(gate_condition, indent=1))


def test_a_pod_starts_on_the_good_node_and_not_on_the_bad_one(gated_site: Lab) -> None:
    for name in ("gpu1", "gpu2"):
        gated_site.kubectl("apply", "-f", "-", stdin=TRAIN.replace("NODE", name))
    until(lambda: running(gated_site, "gpu1"), "the pod of the good node runs")
    [waiting] = pods(gated_site, "gpu2")
    assert waiting["status"]["phase"] == "Pending"
    # Kubernetes 1.36 no longer says which
    assert "untolerated taint" in waiting["status"]["conditions"][0]["message"], waiting["status"]
    print(waiting["status"]["conditions"][0]["message"])
    until(
        lambda: [
            alert for alert in gated_site.prometheus(ALERT) if alert["metric"]["node"] == "gpu2"
        ],
        "GPUNodeUnproven fires",
    )


def test_a_pass_opens_and_then_nothing_is_left_to_do(gated_site: Lab) -> None:
    gated_site.ssh("gpu2", MENDED)
    result, report = gated_site.verify()
    assert report["verdict"] != "failed", result.details
    assert "gate: gpu2 is open" in result.text, result.details
    until(lambda: running(gated_site, "gpu2"), "the pod that waited runs")
    assert gated_site.deploy("--json").changes == []
    drift = gated_site.command(["gpuboot", "drift", "inventories/lab.py"])
    assert drift.code == 0, drift.details


def test_a_node_that_reboots_by_itself_gives_no_gpu_away_before_it_is_proven(
    gated_site: Lab,
) -> None:
    before = state(gated_site, "gpu1")
    gated_site.ssh("cp1", WATCH)
    gated_site.ssh("gpu1", "systemctl --no-block reboot")
    until(
        lambda: state(gated_site, "gpu1").boot_id != before.boot_id,
        "gpu1 reports its new boot",
        240,
    )
    until(lambda: node_gate.is_proven(state(gated_site, "gpu1")), "the gate's timer proves it", 300)
    until(lambda: running(gated_site, "gpu1"), "a pod runs on it again")
    gated_site.ssh("cp1", "systemctl stop watch")
    after = node(gated_site, "gpu1")
    print(gated_site.ssh("gpu1", "journalctl -b -u gpuboot-gate-boot -o short-precise --no-pager"))
    print(gated_site.ssh("cp1", "journalctl -u gpuboot-gate --since -10m -o cat --no-pager"))
    watched = gated_site.ssh("cp1", "cat /run/watched").splitlines()
    rows = [line.split("|") for line in watched]
    print(
        "\n".join(row for i, row in enumerate(watched) if not i or rows[i - 1][1:] != rows[i][1:])
    )
    proven = after["metadata"]["annotations"]["gpuboot.io/proven-time"]
    assert after["metadata"]["annotations"]["gpuboot.io/proven-level"] == "vectoradd"
    assert min(map(datetime.fromisoformat, running(gated_site, "gpu1"))) >= datetime.fromisoformat(
        proven
    )
    # from its own cordon on, until the proof had passed, there was no moment without
    closed = [i for i, row in enumerate(rows) if row[2] == "true" or node_gate.KEY in row[3]]
    assert closed == list(range(closed[0], closed[-1] + 1))
    assert node_gate.CORDON not in state(gated_site, "gpu1").annotations
    assert not node(gated_site, "gpu1")["spec"].get("unschedulable")


def test_a_node_that_comes_back_with_a_bad_gpu_stays_closed(gated_site: Lab) -> None:
    before = state(gated_site, "gpu1")
    gated_site.ssh("gpu1", BREAKS)
    gated_site.lab("power", "--name", gated_site.name, "gpu1", "off")
    gated_site.lab("power", "--name", gated_site.name, "gpu1", "on")
    until(
        lambda: state(gated_site, "gpu1").boot_id != before.boot_id,
        "gpu1 reports its new boot",
        240,
    )
    until(lambda: condition(gated_site, "gpu1")["reason"] == "ProofFailed", "the proof fails", 300)
    assert running(gated_site, "gpu1") == []
    gate_condition = condition(gated_site, "gpu1")
    print(json.dumps(gate_condition, indent=1))
    assert "verification failed" in gate_condition["message"]
    drift = gated_site.command(["gpuboot", "drift", "inventories/lab.py"])
    assert drift.code == 0, drift.details


def test_switched_off_it_leaves_nothing_behind(gated_site: Lab) -> None:
    gated_site.ssh("gpu1", MENDED)
    off = gated_site.deploy(settings=OFF)
    assert off.applied, off.details
    assert not node_gate.is_marked(state(gated_site, "gpu1")), state(gated_site, "gpu1")
    assert (
        gated_site.ssh("cp1", "ls /usr/local/sbin /etc/systemd/system").count("gpuboot-gate") == 0
    )
    assert (
        gated_site.ssh("gpu1", "ls /usr/local/sbin /etc/systemd/system").count("gpuboot-gate") == 0
    )


def test_switched_on_with_another_driver_in_one_run(gated_site: Lab, lock: dict[str, Any]) -> None:
    """Nodes are upgraded before the phase that installs the gate, and proven through it."""
    earlier = lock["previous"]["driver"]
    result = gated_site.deploy(settings={**ON, "driver": earlier})
    assert result.applied, result.details
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    for name in ("gpu1", "gpu2"):
        assert set(gated_site.ssh(name, query).split()) == {earlier["version"]}
        node_state = state(gated_site, name)
        assert marks(node_state)[:2] == (True, False), node_state
        assert not node(gated_site, name)["spec"].get("unschedulable")
