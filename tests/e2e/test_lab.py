"""From bare machines to proven GPUs, and a second run that finds nothing to do."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, RUN_TIMEOUT_S, Lab, until

pytestmark = pytest.mark.lab

VERIFY = ["gpuboot", "verify", "inventories/lab.py"]
WAITS = "waiting for another verification"
HOLDER = """
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    command: [sh, -c, "nvidia-smi -L; sleep 3600"]
    resources: {limits: {nvidia.com/gpu: 1}}
"""


def test_every_gpu_is_proven_at_every_link(lab: Lab) -> None:
    report = json.loads((lab.reports / "latest/verify.json").read_text())
    assert report["verdict"] == "proven", report
    proven = {(item["node"], item["gpu_uuid"]) for item in report["findings"] if item["gpu_uuid"]}
    assert Counter(node for node, _ in proven) == {"gpu1": 2, "gpu2": 4}
    assert {item["status"] for item in report["findings"]} == {"pass"}


def test_all_reports_are_there(lab: Lab) -> None:
    latest = lab.reports / "latest"
    assert {path.name for path in latest.iterdir()} >= {
        "run.html",
        "run.json",
        "verify.json",
        "verify.xml",
        "verify.html",
    }


def test_three_nodes_are_ready(lab: Lab) -> None:
    assert lab.snapshot()["ready"] == {"cp1": ["True"], "gpu1": ["True"], "gpu2": ["True"]}


def test_prometheus_sees_one_gpu_target_a_node_and_no_red_one(lab: Lab) -> None:
    gpu_nodes = [r["metric"]["node"] for r in lab.prometheus('up{job=~".*dcgm-exporter"}==1')]
    assert sorted(gpu_nodes) == ["gpu1", "gpu2"]
    assert lab.prometheus("up==0") == []


def test_second_run_changes_nothing_while_a_pod_holds_a_gpu(lab: Lab) -> None:
    lab.ssh("cp1", f"cat > /root/holder.yaml <<'EOF'\n{HOLDER}\nEOF\n")
    lab.kubectl("apply", "-f", "/root/holder.yaml")
    try:
        lab.kubectl("wait", "--for=condition=Ready", "pod/holder", "--timeout=60s")
        before = lab.snapshot()
        assert lab.deploy("--json").changes == []
        assert lab.snapshot() == before
    finally:
        lab.kubectl("delete", "pod", "holder", "--now")
    # the cost of a run with nothing to do is its commands: they are counted, since seconds vary
    run = json.loads((lab.reports / "latest/run.json").read_text())
    commands = {name: host["commands"] for name, host in run["hosts"].items()}
    assert 0 < commands["cp1"] <= 20, commands
    assert 0 < commands["gpu1"] <= 12, commands
    assert 0 < commands["gpu2"] <= 12, commands


def test_nothing_is_wrong_with_a_site_that_nobody_touched(lab: Lab) -> None:
    for command in ("diagnose", "drift"):
        result = lab.command(["gpuboot", command, "inventories/lab.py"])
        assert result.code == 0, result.details


def test_a_lost_gpu_is_named_with_node_link_and_remedy(lab: Lab) -> None:
    assert lab.lab("fault", "--name", lab.name, "gpu1", "set", "1", "lost", "1").code == 0
    try:
        result, report = lab.verify()
        assert result.code == 1, result.details
        failed = [item for item in report["findings"] if item["status"] == "fail"]
        assert {item["node"] for item in failed} == {"gpu1"}
        assert all(item["remedy"] for item in failed)
        lost_uuid = f"GPU-{_seed(lab, 'gpu1')}-5157-4c6c-8abc-000000000001"
        assert lost_uuid in result.text
        assert lost_uuid in {item["gpu_uuid"] for item in failed}
    finally:
        assert lab.lab("fault", "--name", lab.name, "gpu1", "clear").code == 0
        # the device plugin takes a GPU back only when its pod restarts
        plugin = "nvidia-device-plugin-daemonset"
        lab.renew(plugin, "gpu1")
        back = ("rollout", "status", f"daemonset/{plugin}", "--timeout=120s")
        lab.kubectl("-n", "gpu-operator", *back)
    _until_proven(lab)


def test_a_stopped_exporter_is_named(lab: Lab) -> None:
    label = "nvidia.com/gpu.deploy.dcgm-exporter"
    lab.kubectl("label", "node", "gpu2", f"{label}=paused", "--overwrite")
    try:
        result, report = lab.verify()
        assert result.code == 1, result.details
        failed = [item for item in report["findings"] if item["status"] == "fail"]
        assert "gpu2" in {item["node"] for item in failed}
        assert any("exporter" in item["link"] + item["detail"] for item in failed)
        assert all(item["remedy"] for item in failed)
    finally:
        lab.kubectl("label", "node", "gpu2", f"{label}=true", "--overwrite")
    _until_proven(lab)


def test_services_that_lead_nowhere_are_named_and_kube_proxy_restores_them(lab: Lab) -> None:
    command = "nft list map ip kube-proxy service-ips"
    lab.ssh("gpu1", "nft flush map ip kube-proxy service-ips")
    try:
        result, report = lab.verify()
        assert result.code == 1, result.details
        failed = [item for item in report["findings"] if item["status"] == "fail"]
        services = [item for item in failed if item["link"] == "services"]
        assert [item["node"] for item in services] == ["gpu1"]
        assert "kube-proxy" in services[0]["remedy"]
        assert {item["link"] for item in failed} <= {"services", "targets"}
    finally:
        # its second start finds what the first one wrote
        pod = ("-l", "k8s-app=kube-proxy", "--field-selector", "spec.nodeName=gpu1")
        for _ in range(2):
            lab.kubectl("-n", "kube-system", "delete", "pod", *pod)
            until(lambda: "10.96.0.1 . tcp . 443" in lab.ssh("gpu1", command), "Services of gpu1")
    _until_proven(lab)


def test_two_verifications_at_once_are_both_proven(lab: Lab, tmp_path: Path) -> None:
    lease = json.loads(lab.kubectl("create", "-o", "json", "-f", "-", stdin=_third_verification()))
    logs = [tmp_path / "first", tmp_path / "second"]
    runs = [_started(lab, path) for path in logs]
    until(lambda: all(WAITS in path.read_text() for path in logs), "both wait for the third")
    lab.kubectl("-n", "kube-system", "delete", "lease", lease["metadata"]["name"])
    assert [run.wait(RUN_TIMEOUT_S) for run in runs] == [0, 0], [log.read_text() for log in logs]
    # both for the third one, and one of them for the other
    assert sum(path.read_text().count(WAITS) for path in logs) == 3
    leases = lab.kubectl("-n", "kube-system", "get", "leases", "-o", "name")
    assert "gpuboot-verify" not in leases


def _started(lab: Lab, log: Path) -> subprocess.Popen[str]:
    with log.open("w") as out:
        return subprocess.Popen(
            VERIFY, cwd=ROOT, env=lab.environment(), stdout=out, stderr=out, text=True
        )


def _third_verification() -> str:
    """The Lease of a verification, renewed last in a minute."""
    renewed = datetime.now(UTC) + timedelta(minutes=1)
    spec = {"holderIdentity": "third", "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    return json.dumps(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "gpuboot-verify", "namespace": "kube-system"},
            "spec": spec,
        }
    )


def _seed(lab: Lab, machine: str) -> str:
    output = lab.ssh(machine, "grep -m1 uuid_seed /var/lib/gpu-sim/hardware.conf")
    return f"{int(output.split('=')[1].strip(), 0):08x}"


def _until_proven(lab: Lab, tries: int = 4) -> None:
    for attempt in range(tries):
        result, _ = lab.verify()
        if result.code == 0:
            return
        time.sleep(5 * attempt)
    pytest.fail(result.details)
