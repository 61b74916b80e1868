"""What a plan and a run tell, through the real command line, on a site that lives already."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster import node_gate
from gpuboot.config.settings import Settings
from gpuboot.config.versions import lock
from tests.fork_server import run_pyinfra

ROOT = Path(__file__).resolve().parents[2]
MORE_SETTINGS = {
    "monitoring": {"retention": "20d"},
    "exporter": {"counters": ["DCGM_FI_DEV_FB_TOTAL"]},
}


def call(
    command: list[str], settings: dict[str, Any] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    program, *arguments = command
    variables = {"PLAN_SETTINGS": json.dumps(settings or {}), **environment}
    if program == "pyinfra":
        return run_pyinfra(arguments, environment=variables)
    return subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def run_living(
    *arguments: str, settings: dict[str, Any] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = ["pyinfra", "tests/plan/inventories/existing.py", "deploys/site.py", *arguments]
    return call(command, settings, **environment)


def plan_lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of a plan, without what pyinfra says before it."""
    assert result.returncode == 0, result.stderr
    return result.stderr.split("Preparing operation files...")[1].strip().splitlines()


def test_nothing_to_do_is_one_line() -> None:
    lines = [line for line in plan_lines(run_living("--dry")) if line]
    assert lines == ["Nothing to do: 2 hosts of gpuboot are as the settings say."]


def test_a_plan_has_just_what_changes_old_and_new_and_what_restarts(tmp_path: Path) -> None:
    settings = {**MORE_SETTINGS, "verify": {"reports": str(tmp_path)}}
    lines = plan_lines(run_living("--dry", settings=settings))
    values = "~ Helm release {}: "
    prometheus = "Prometheus monitoring/kube-prometheus-stack-prometheus"
    exporter = "DaemonSet gpu-operator/nvidia-dcgm-exporter"
    details = [line.strip() for line in lines if line.startswith("      ")]
    stamp = values.format("gpu-operator") + "dcgmExporter.annotations.gpuboot.io/collectors "
    assert details[0].startswith(stamp)
    assert details[1:3] == [
        values.format("gpu-operator") + "dcgmExporter.config.data",
        "+DCGM_FI_DEV_FB_TOTAL, gauge, Device memory (MiB)",
    ]
    assert details[3].startswith(f"! {exporter} restarts")
    assert details[4] == (
        values.format("kube-prometheus-stack") + "prometheus.prometheusSpec.retention 15d → 20d"
    )
    assert details[5].startswith(f"! {prometheus} restarts: no queries, alerts or scrapes")
    assert len(details) == 6
    assert "2 operations change 1 of 2 hosts" in "\n".join(lines)
    assert [line.split(maxsplit=1)[1] for line in lines[-4:-2]] == [
        "none", f"{exporter}; {prometheus}",
    ]  # fmt: skip


def test_what_somebody_did_by_hand_is_named() -> None:
    details = [line.strip() for line in plan_lines(run_living("--dry", PLAN_BENT="1"))]
    stack = "monitoring/kube-prometheus-stack-prometheus"
    assert f"~ Service {stack}: deleted → created again" in details
    assert f"~ Prometheus {stack}: spec.retention 1d → 10d" in details
    assert "~ Deployment gpu-operator/gpu-operator: spec.replicas 0 → 1" in details
    assert [line for line in details if line.startswith("- ConfigMap monitoring/")] == [
        next(line for line in details if line.endswith("data.mine.json was {}"))
    ]
    assert [line for line in details if line.endswith(": created")]  # a dashboard that was deleted
    assert "~ Deployment kube-system/coredns: deleted → created again" in details
    assert "5 operations change 1 of 2 hosts" in "\n".join(details)


def test_a_corefile_of_the_sites_own_is_named_and_no_change() -> None:
    lines = [line for line in plan_lines(run_living("--dry", PLAN_DECIDED="1")) if line]
    assert lines[:2] == [
        "Nothing to do: 2 hosts of gpuboot are as the settings say.",
        "Left as somebody has set it",
    ]
    assert lines[3].strip().startswith("= kept: ConfigMap kube-system/coredns: Corefile: somebody")
    assert [line.strip() for line in lines[4:]] == ["+corp.example:53 {}"]


def test_a_metrics_server_of_somebody_else_stays() -> None:
    settings = {"cluster": {"metrics_server": True}}
    for foreign, name in (
        ("metrics-server", "Service kube-system/metrics-server serves v1beta1.metrics.k8s.io"),
        ("kubelet-csr-approver", "Deployment kube-system/kubelet-csr-approver approves"),
    ):
        lines = plan_lines(run_living("--dry", settings=settings, PLAN_FOREIGN=foreign))
        decisions = [line.strip() for line in lines if "= kept: " in line]
        assert lines[0].startswith("Nothing to do: "), lines
        assert len(decisions) == 1
        assert decisions[0].startswith(f"= kept: {name}")


def test_a_decision_is_named_beside_what_the_same_operation_changes() -> None:
    output = "\n".join(plan_lines(run_living("--dry", PLAN_DECIDED="1", PLAN_BENT="1")))
    changed, decisions = output.split("Left as somebody has set it")
    assert "~ Deployment kube-system/coredns: deleted → created again" in changed
    assert "kept" not in changed
    assert "+corp.example:53 {}" in decisions


def test_another_driver_is_told_node_by_node() -> None:
    output = "\n".join(plan_lines(run_living("--dry", PLAN_DRIVER="590.1.1")))
    node = output[output.index("Node upgrades") : output.index("Cost")]
    for part in (
        "Upgrade the workers: driver, container toolkit, containerd, kubelet · @fake/gpu1",
        "~ package nvidia-open: version 590.1.1-1 → ",
        "~ NVIDIA driver: loaded 590.1.1 → ",
        "! node gpu1 is cordoned: no new pods until it is proven",
        # and drained, were there another node that takes pods
        "! node gpu1 reboots: its pods stop, and start again after the boot; this interrupts",
    ):
        assert part in node
    assert "this interrupts GPU pods: ml/train" in node
    assert "Drivers" not in output, "nothing is installed but there"
    assert "reboots:    node gpu1" in output
    assert "GPU pods:   interrupted: ml/train" in output


@pytest.mark.parametrize(
    ("cluster", "driver"), [("1.36.4", "590.1.1"), ("1.36.4", ""), ("", "590.1.1")]
)
def test_a_node_goes_out_of_service_once_whatever_changes(cluster: str, driver: str) -> None:
    """No kubelet may be newer than an API server."""
    result = run_living("--dry", PLAN_KUBERNETES=cluster, PLAN_DRIVER=driver, PLAN_SECOND="1")
    output = "\n".join(plan_lines(result))
    titles = re.findall(r"^  (.*) · ", output, re.MULTILINE)
    upgrades = list(dict.fromkeys(title for title in titles if title.startswith("Upgrade ")))
    parts = ": driver, container toolkit, containerd, kubelet"
    release = lock(Settings()).kubernetes.version
    leader = (
        [f"Upgrade the leader to Kubernetes {release} (kubeadm upgrade apply)"] if cluster else []
    )
    last = [f"Upgrade the control planes{parts}"] if cluster else []
    assert upgrades == [*leader, f"Upgrade the workers{parts}", *last]
    for name in ("gpu1", "gpu2"):
        assert output.count(f"node {name} is cordoned") == 1
        assert output.count(f"node {name} is drained") == 1
    assert output.count("node cp1 is cordoned") == len(last)


@pytest.mark.parametrize("loaded", ["", "590.1.1"])
def test_a_node_that_an_earlier_run_left_out_goes_before_the_others(loaded: str) -> None:
    """By an operation of its own: pyinfra begins the next one when all hosts have ended it."""
    output = "\n".join(
        plan_lines(run_living("--dry", PLAN_BEGUN="1", PLAN_SECOND="1", PLAN_DRIVER=loaded))
    )
    first = "Go on with the workers whose upgrade was begun · @fake/gpu1\n"
    second = "Upgrade the workers: driver, container toolkit, containerd, kubelet · @fake/gpu2\n"
    assert (
        re.findall(r"^  (.* · .*\n)", output, re.MULTILINE)[:2]
        == [first, second][: 1 + bool(loaded)]
    )
    assert output.count("is cordoned") == 1 + bool(loaded)


def test_groups_of_workers_follow_one_another(tmp_path: Path) -> None:
    inventory = tmp_path / "site.py"
    text = "from tests.plan.living_site import control_plane, workers"
    inventory.write_text(f"{text}\na100 = (workers[0][:1], {{}})\n")
    limits = {"upgrade": {"max_unavailable": {"a100": 1, "*": 1}}}
    command = ["pyinfra", str(inventory), "deploys/site.py", "--dry"]
    output = "\n".join(plan_lines(call(command, limits, PLAN_SECOND="1", PLAN_DRIVER="590.1.1")))
    ends = ": driver, container toolkit, containerd, kubelet · @fake/"
    assert re.findall(r"^  (.* · .*)", output, re.MULTILINE)[:2] == [
        f"Upgrade the workers of a100{ends}gpu1", f"Upgrade the other workers{ends}gpu2",
    ]  # fmt: skip


def test_the_plan_for_programs_is_json_alone() -> None:
    command = ["gpuboot", "plan", "tests/plan/inventories/existing.py"]
    result = call([*command, "--detailed-exitcode"], MORE_SETTINGS)
    assert result.returncode == 2
    plan = json.loads(result.stdout)
    assert [step["operation"].split(" (")[0] for step in plan["steps"]] == [
        "Deploy gpu-operator", "Deploy kube-prometheus-stack",
    ]  # fmt: skip
    [host] = plan["steps"][1]["hosts"]
    assert host["changes"] == [
        {
            "subject": "Helm release kube-prometheus-stack",
            "field": "prometheus.prometheusSpec.retention",
            "old": "15d",
            "new": "20d",
        }
    ]
    assert [effect["kind"] for effect in host["effects"]] == ["restart"]
    rejected = call(command, {"clutser": {}})
    assert (rejected.returncode, rejected.stdout) == (1, "")
    assert "unknown setting clutser" in rejected.stderr


def test_drift_is_listed_for_people_and_prometheus(tmp_path: Path) -> None:
    metrics = tmp_path / "gpuboot.prom"
    command = ["gpuboot", "drift", "tests/plan/inventories/existing.py"]
    result = call([*command, "--metrics", str(metrics)], MORE_SETTINGS)
    assert (result.returncode, result.stderr) == (1, "")
    assert "@fake/cp1: Monitoring | Deploy kube-prometheus-stack" in result.stdout
    assert "~ Helm release kube-prometheus-stack: prometheus.prometheusSpec" in result.stdout
    assert 'gpuboot_drift_operations{cluster="gpuboot",host="@fake/gpu1"} 0' in metrics.read_text()
    heads = [line for line in result.stdout.splitlines() if line.startswith("@fake/")]
    assert len(heads) == 2
    unwritable = call([*command, "--metrics", str(tmp_path / "none" / "x.prom")], MORE_SETTINGS)
    assert unwritable.returncode == 2
    assert "there is no folder" in unwritable.stderr
    rejected = call(command, {"clutser": {}})
    assert rejected.returncode == 2
    assert "unknown setting clutser" in rejected.stderr


def test_after_a_failure_on_the_leader_the_last_screen_is_the_verdict(tmp_path: Path) -> None:
    settings = {
        "proxy": {"http": "http://me:very-secret@proxy.example:3128"},
        "verify": {"reports": str(tmp_path)},
    }
    result = run_living(
        "-y", "--data", "note=very-secret", settings=settings, PLAN_FAILS="95gpuboot.gpu"
    )
    assert result.returncode == 1
    assert "very-secret" not in result.stderr + result.stdout
    run, last = result.stderr.split("\nfailed on ")
    verdict = f"failed on {last}".splitlines()
    assert verdict[0].startswith("failed on @fake/cp1: Base | ")
    assert verdict[1:3] == ["    cause:   it broke", "    remedy:  put it right"]
    assert verdict[3].startswith(
        "not tried on @fake/cp1: the rest of Base, Packages, Control plane upgrade, Node upgrades"
    )
    assert verdict[4].startswith("changed by this run before it ended: @fake/gpu1 (")
    assert verdict[5] == (
        "go on with: pyinfra tests/plan/inventories/existing.py deploys/site.py --data note=... -y"
    )
    assert verdict[6].startswith("report: ")
    assert len(verdict) == 7
    for never in ("Skipped", "No changes", "Monitoring", "Grand total", "Disconnecting"):
        assert never not in run
    assert re.search(r"Base: \d+ operations, 2 changed something, 1 failed", run)
    run_record = json.loads(next(tmp_path.glob("*-gpuboot/run.json")).read_text())
    assert run_record["hosts"]["@fake/cp1"]["not_tried"][-1].startswith("Verify | ")
    assert run_record["hosts"]["@fake/gpu1"]["not_tried"] == []
    operation = next(
        item for item in run_record["operations"] if item["name"] == verdict[0].split(" | ")[1]
    )
    assert list(operation["changed"]) == ["@fake/gpu1"]
    assert operation["changed"]["@fake/gpu1"]["changes"][0]["subject"].endswith("95gpuboot")
    assert "very-secret" not in json.dumps(run_record)


def test_the_gate_closes_what_is_not_proven_before_anything_else_changes() -> None:
    lines = plan_lines(run_living("--dry", settings={"gate": {"enabled": True}}))
    details = [line.strip() for line in lines if line.startswith("      ")]
    program = details.index(
        f"+ file {node_gate.PROGRAM}: {node_gate.program().count(chr(10))} lines"
    )
    # it tolerates the gate's taint from then on
    assert all("kubelet-csr-approver" in line for line in details[:program]), details[:program]
    details = details[program:]
    # what follows the first command of an operation belongs to the plan as well
    assert "+ unit gpuboot-gate.timer: boot enabled" in details
    closed = details.index(f"+ node gpu1: taint {node_gate.TAINT} set")
    boot_program = (
        f"+ file {node_gate.BOOT_PROGRAM}: {node_gate.boot_program().count(chr(10))} lines"
    )
    assert details.index(boot_program) < closed
    assert {line.split()[1] for line in details[:closed]} == {"file", "unit"}
    assert "reboots:    none" in "\n".join(lines)
