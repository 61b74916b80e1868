"""The gate: no pod gets a GPU on a node that is not proven, be it new or rebooted by itself."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from gpuboot.kubernetes import gate
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
def gated(site: Lab) -> Lab:
    """A control plane and two GPU nodes on bare machines; the GPU of gpu2 computes wrong."""
    site.ssh("gpu2", BREAKS)
    return Lab(site.name, ON)


def node(lab: Lab, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.kubectl("get", "node", name, "-o", "json"))
    return found


def state(lab: Lab, name: str) -> gate.GateState:
    return gate.parse(node(lab, name))


def condition(lab: Lab, name: str) -> dict[str, str]:
    found = node(lab, name)["status"]["conditions"]
    [one] = [item for item in found if item["type"] == gate.CONDITION]
    return dict(one)


def pods(lab: Lab, name: str) -> list[dict[str, Any]]:
    said = lab.kubectl("get", "pods", "-l", f"app=train-{name}", "-o", "json")
    found: list[dict[str, Any]] = json.loads(said)["items"]
    return found


def running(lab: Lab, name: str) -> list[str]:
    """When containers of the node's pods started that run."""
    return [
        one["state"]["running"]["startedAt"]
        for pod in pods(lab, name)
        for one in pod["status"].get("containerStatuses", [])
        if "running" in one["state"]
    ]


def test_a_new_node_is_open_when_it_is_proven_and_a_bad_one_stays_closed(gated: Lab) -> None:
    done = gated.deploy()
    assert done.code == 1, done.told
    assert "vectorAdd" in done.text
    good, bad = state(gated, "gpu1"), state(gated, "gpu2")
    assert (gate.is_proven(good), good.tainted, good.cordoned) == (True, False, False), good
    assert (gate.is_proven(bad), bad.tainted, bad.cordoned) == (False, True, False), bad
    why = condition(gated, "gpu2")
    assert (why["status"], why["reason"]) == ("False", "VerifyFailed"), why
    assert "verification failed" in why["message"], why
    proof = node(gated, "gpu1")["metadata"]["annotations"]
    assert proof["gpuboot.io/proven-level"] == "standard"
    assert proof["gpuboot.io/proven-gpus"].startswith("GPU-")
    print(json.dumps({key: value for key, value in proof.items() if "proven" in key}, indent=1))
    print(json.dumps(why, indent=1))


def test_a_pod_starts_on_the_good_node_and_not_on_the_bad_one(gated: Lab) -> None:
    for name in ("gpu1", "gpu2"):
        gated.kubectl("apply", "-f", "-", given=TRAIN.replace("NODE", name))
    until(lambda: running(gated, "gpu1"), "the pod of the good node runs")
    [waiting] = pods(gated, "gpu2")
    assert waiting["status"]["phase"] == "Pending"
    # Kubernetes 1.36 no longer says which
    assert "untolerated taint" in waiting["status"]["conditions"][0]["message"], waiting["status"]
    print(waiting["status"]["conditions"][0]["message"])
    until(
        lambda: [one for one in gated.prometheus(ALERT) if one["metric"]["node"] == "gpu2"],
        "GPUNodeUnproven fires",
    )


def test_a_pass_opens_and_then_nothing_is_left_to_do(gated: Lab) -> None:
    gated.ssh("gpu2", MENDED)
    done, report = gated.verify()
    assert report["verdict"] != "failed", done.told
    assert "gate: gpu2 is open" in done.text, done.told
    until(lambda: running(gated, "gpu2"), "the pod that waited runs")
    assert gated.deploy("--json").changes == []
    drift = gated.command(["gpuboot", "drift", "inventories/lab.py"])
    assert drift.code == 0, drift.told


def test_a_node_that_reboots_by_itself_gives_no_gpu_away_before_it_is_proven(gated: Lab) -> None:
    before = state(gated, "gpu1")
    gated.ssh("cp1", WATCH)
    gated.ssh("gpu1", "systemctl --no-block reboot")
    until(lambda: state(gated, "gpu1").running != before.running, "gpu1 reports its new boot", 240)
    until(lambda: gate.is_proven(state(gated, "gpu1")), "the gate's timer proves it", 300)
    until(lambda: running(gated, "gpu1"), "a pod runs on it again")
    gated.ssh("cp1", "systemctl stop watch")
    after = node(gated, "gpu1")
    print(gated.ssh("gpu1", "journalctl -b -u gpuboot-gate-boot -o short-precise --no-pager"))
    print(gated.ssh("cp1", "journalctl -u gpuboot-gate --since -10m -o cat --no-pager"))
    seen = gated.ssh("cp1", "cat /run/watched").splitlines()
    rows = [line.split("|") for line in seen]
    print("\n".join(row for i, row in enumerate(seen) if not i or rows[i - 1][1:] != rows[i][1:]))
    proven = after["metadata"]["annotations"]["gpuboot.io/proven-time"]
    assert after["metadata"]["annotations"]["gpuboot.io/proven-level"] == "vectoradd"
    assert min(map(datetime.fromisoformat, running(gated, "gpu1"))) >= datetime.fromisoformat(
        proven
    )
    # from its own cordon on, until the proof had passed, there was no moment without
    closed = [i for i, row in enumerate(rows) if row[2] == "true" or gate.KEY in row[3]]
    assert closed == list(range(closed[0], closed[-1] + 1))
    assert not state(gated, "gpu1").cordoned
    assert not node(gated, "gpu1")["spec"].get("unschedulable")


def test_a_node_that_comes_back_with_a_bad_gpu_stays_closed(gated: Lab) -> None:
    before = state(gated, "gpu1")
    gated.ssh("gpu1", BREAKS)
    gated.lab("power", "--name", gated.name, "gpu1", "off")
    gated.lab("power", "--name", gated.name, "gpu1", "on")
    until(lambda: state(gated, "gpu1").running != before.running, "gpu1 reports its new boot", 240)
    until(lambda: state(gated, "gpu1").reason == "ProofFailed", "the proof fails", 300)
    assert running(gated, "gpu1") == []
    why = condition(gated, "gpu1")
    print(json.dumps(why, indent=1))
    assert "verification failed" in why["message"]
    drift = gated.command(["gpuboot", "drift", "inventories/lab.py"])
    assert drift.code == 0, drift.told


def test_switched_off_it_leaves_nothing_behind(gated: Lab) -> None:
    gated.ssh("gpu1", MENDED)
    off = gated.deploy(settings=OFF)
    assert off.applied, off.told
    assert not gate.is_marked(state(gated, "gpu1")), state(gated, "gpu1")
    assert gated.ssh("cp1", "ls /usr/local/sbin /etc/systemd/system").count("gpuboot-gate") == 0
    assert gated.ssh("gpu1", "ls /usr/local/sbin /etc/systemd/system").count("gpuboot-gate") == 0


def test_switched_on_with_another_driver_in_one_run(gated: Lab, lock: dict[str, Any]) -> None:
    """Nodes are upgraded before the phase that installs the gate, and proven through it."""
    earlier = lock["previous"]["driver"]
    done = gated.deploy(settings={**ON, "driver": earlier})
    assert done.applied, done.told
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    for name in ("gpu1", "gpu2"):
        assert set(gated.ssh(name, query).split()) == {earlier["version"]}
        found = state(gated, name)
        assert (gate.is_proven(found), found.tainted) == (True, False), found
        assert not node(gated, name)["spec"].get("unschedulable")
