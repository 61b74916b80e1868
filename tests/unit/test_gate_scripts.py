"""The gate's scripts on a pretended cluster: they close nodes, prove and open them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster import node_gate
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.verify.workload_pods import gate_pod

ON = parse_settings({"gate": {"enabled": True}})
OFF = parse_settings({})
GPU1 = Node("gpu1", "gpu1", "10.0.0.2", "worker", 2, False)
LEADER = Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, True)
PASSED = """\
GPU 0: SIMULATED (UUID: GPU-a)
GPU 1: SIMULATED (UUID: GPU-b)
GPU-a: Test PASSED
GPU-a: exit 0
GPU-b: Test PASSED
GPU-b: exit 0
"""
COMPUTE_FAILED = PASSED.replace("GPU-b: Test PASSED\nGPU-b: exit 0", (
    "GPU-b: Result verification failed at element 7!\nGPU-b: exit 1"
))  # fmt: skip


def ago(**past: float) -> str:
    return f"{datetime.now(UTC) - timedelta(**past):%Y-%m-%dT%H:%M:%SZ}"


def proven(**fields: Any) -> dict[str, Any]:
    """A node that was proven an hour ago, and serves."""
    notes = {
        "gpuboot.io/proven-boot": "b1",
        "gpuboot.io/proven-time": ago(hours=1),
        "gpuboot.io/proven-level": "standard",
        "gpuboot.io/proven-gpus": "GPU-a,GPU-b",
    }
    condition = {"status": "True", "lastTransitionTime": ago(hours=1)}
    return {"name": "gpu1", "boot": "b1", "annotations": notes, "condition": condition} | fields


def closed(**fields: Any) -> dict[str, Any]:
    return {"name": "gpu1", "boot": "b1", "taints": [node_gate.KEY]} | fields


class Site:
    """A cluster of one GPU node, and a leader to run the gate's programs on."""

    def __init__(self, root: Path) -> None:
        self.root, self.path = root, root / "state.json"
        (root / "etc/gpuboot").mkdir(parents=True)
        (root / "bin").mkdir()
        kubectl = root / "bin/kubectl"
        script = Path(__file__).with_name("fake_kubectl.py")
        kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        kubectl.chmod(0o755)
        settings = parse_settings({"gate": {"enabled": True}, "verify": {"timeout_s": 10}})
        for path, text in node_gate.leader_files(settings, "1.2.3", gate_pod(settings)).items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    def run(
        self, script: str, *arguments: str, stdin: str = "", **state: Any
    ) -> subprocess.CompletedProcess[str]:
        self.path.write_text(json.dumps({"pods": [], "logs": {"gpu1": PASSED}, **state}))
        script = script.replace("/etc/gpuboot", f"{self.root}/etc/gpuboot")
        script = script.replace("PATH=", f"PATH={self.root}/bin:").replace("sleep 1\n", ":\n")
        result = subprocess.run(
            ["sh", "-c", script, "gpuboot-gate", *arguments],
            env={**os.environ, "STATE": str(self.path)},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.state = json.loads(self.path.read_text())
        return result

    def look(self, node: dict[str, Any], **state: Any) -> dict[str, Any]:
        """The node after a look of the timer."""
        result = self.run(node_gate.program(), "look", nodes=[node], **state)
        assert result.returncode == 0, result.stderr
        self.output = result.stdout + result.stderr
        updated_node: dict[str, Any] = self.state["nodes"][0]
        return updated_node


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_what_is_proven_is_left_alone_by_one_question(site: Site) -> None:
    node = proven()
    assert site.look(node) == node
    assert len(site.state["calls"]) == 1


def test_a_closed_node_is_proven_and_opened(site: Site) -> None:
    node = site.look(closed())
    assert node["taints"] == []
    assert node["condition"]["status"] == "True"
    assert node["annotations"] == {
        "gpuboot.io/proven-boot": "b1",
        "gpuboot.io/proven-gpus": "GPU-a,GPU-b",
        "gpuboot.io/proven-level": "vectoradd",
        "gpuboot.io/proven-time": node["annotations"]["gpuboot.io/proven-time"],
        "gpuboot.io/proven-version": "1.2.3",
    }
    [pod] = site.state["pods"]
    assert pod["spec"]["nodeName"] == "gpu1"
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert any(call.startswith("delete namespace gpuboot-verify-") for call in site.state["calls"])
    assert site.state["lease"] is None


def test_a_node_that_rebooted_is_closed_before_it_is_proven_again(site: Site) -> None:
    node = site.look(proven(boot="b2"), logs={})
    assert node["taints"] == [node_gate.KEY]
    assert node["condition"]["status"] == "False"
    assert "gpu1 is closed: Rebooted: it rebooted after its GPUs were proven" in site.output


def test_the_node_s_own_cordon_becomes_a_taint_and_goes(site: Site) -> None:
    notes = proven()["annotations"] | {node_gate.CORDON: "b2"}
    node = site.look(proven(boot="b2", annotations=notes, cordoned=True))
    calls = site.state["calls"]
    taint = calls.index(f"taint --overwrite node gpu1 {node_gate.TAINT}")
    assert taint < calls.index("uncordon gpu1")
    assert (node["cordoned"], node["taints"]) == (False, [])
    assert node["annotations"]["gpuboot.io/proven-boot"] == "b2"
    assert node_gate.CORDON not in node["annotations"]


def test_its_cordon_stays_until_its_kubelet_tells_of_the_new_boot(site: Site) -> None:
    """The node object has the proven boot's id for as long as the kubelet has not begun."""
    notes = proven()["annotations"] | {node_gate.CORDON: "b2"}
    node = proven(annotations=notes, cordoned=True)
    assert site.look(node) == node
    assert len(site.state["calls"]) == 1


def test_a_person_s_cordon_stays_and_nothing_is_proven_meanwhile(site: Site) -> None:
    node = site.look(proven(boot="b2", cordoned=True))
    assert node["cordoned"]
    assert node["taints"] == [node_gate.KEY]
    assert site.state["pods"] == []


@pytest.mark.parametrize(
    ("log", "phase", "reason"),
    [
        (COMPUTE_FAILED, "Succeeded", "vectorAdd: GPU-b: Result verification failed at element 7!"),
        (PASSED.replace("GPU-b: exit 0\n", ""), "Succeeded", "1 of 2 devices computed"),
        ("", "Failed UnexpectedAdmissionError", "UnexpectedAdmissionError"),
        ("", "Succeeded", "0 of 2 devices computed"),
    ],
)
def test_a_gpu_that_fails_keeps_its_node_closed_with_the_reason(
    site: Site, log: str, phase: str, reason: str
) -> None:
    node = site.look(closed(), logs={"gpu1": log}, phases={"gpu1": phase})
    assert node["taints"] == [node_gate.KEY]
    assert (node["condition"]["status"], node["condition"]["reason"]) == ("False", "ProofFailed")
    assert reason in node["condition"]["message"]


def test_a_gpu_that_hangs_fails_when_time_is_up(site: Site) -> None:
    settings = (site.root / "etc/gpuboot/gate.conf").read_text()
    (site.root / "etc/gpuboot/gate.conf").write_text(
        settings.replace("timeout_s=10", "timeout_s=1")
    )
    node = site.look(closed(), logs={}, phases={"gpu1": "Running"})
    assert "no answer within 1 s" in node["condition"]["message"]


@pytest.mark.parametrize(
    ("phase", "status"),
    [
        ("Failed OutOfnvidia.com/gpu", "Unknown"),
        ("Failed Evicted", "Unknown"),
        ("Failed Preempting", "Unknown"),
        ("Failed Terminated", "Unknown"),
        ("Failed UnexpectedAdmissionError", "False"),
    ],
)
def test_a_pod_that_did_not_compute_proves_nothing(site: Site, phase: str, status: str) -> None:
    """One that was evicted for want of memory closed its node as one whose GPUs fail."""
    node = site.look(closed(), logs={}, phases={"gpu1": phase})
    assert node["taints"] == [node_gate.KEY]
    assert node["condition"]["status"] == status


@pytest.mark.parametrize(("age", "retried"), [({"minutes": 5}, False), ({"minutes": 11}, True)])
def test_a_proof_that_failed_is_tried_again_after_ten_minutes(
    site: Site, age: dict[str, float], retried: bool
) -> None:
    failed = {
        "status": "False", "lastTransitionTime": ago(hours=2), "lastHeartbeatTime": ago(**age)
    }  # fmt: skip
    node = site.look(closed(condition=failed))
    assert (node["taints"] == []) is retried


@pytest.mark.parametrize(("log", "taints"), [(PASSED, []), (COMPUTE_FAILED, [node_gate.KEY])])
def test_an_old_proof_is_renewed(site: Site, log: str, taints: list[str]) -> None:
    notes = proven()["annotations"] | {"gpuboot.io/proven-time": ago(hours=25)}
    node = site.look(proven(annotations=notes), logs={"gpu1": log})
    assert node.get("taints", []) == taints
    assert (node["annotations"] == notes) is bool(taints)


def test_pods_that_hold_all_gpus_are_not_disturbed_by_a_renewal(site: Site) -> None:
    notes = proven()["annotations"] | {"gpuboot.io/proven-time": ago(hours=25)}
    node = proven(annotations=notes)
    assert site.look(node, held={"gpu1": 2}) == node
    assert site.state["pods"] == []


@pytest.mark.parametrize(("offers", "status"), [(1, "False"), (0, None)])
def test_a_node_without_all_of_its_gpus_waits(site: Site, offers: int, status: str | None) -> None:
    node = site.look(closed(offers=offers, condition={
        "status": "Unknown", "lastTransitionTime": ago(hours=2)
    }))  # fmt: skip
    assert node["taints"] == [node_gate.KEY]
    assert node["condition"]["status"] == (status or "Unknown")
    assert site.state["pods"] == []


@pytest.mark.parametrize(("age", "waits"), [(5, True), (60, False)])
def test_another_verification_goes_on(site: Site, age: int, waits: bool) -> None:
    lease = {"holderIdentity": "gpuboot-verify-x", "renewTime": ago(seconds=age)}
    node = site.look(closed(), lease=lease)
    assert (node["taints"] == [node_gate.KEY]) is waits
    assert (site.state["lease"] == lease) is waits


def test_what_a_verification_found_is_recorded(site: Site) -> None:
    nodes = [closed(), closed(name="gpu2"), proven(name="gpu3"), closed(name="gpu4")]
    recorded_lines = node_gate.lines(
        [
            ("open", "gpu1", "b1", "standard", "GPU-a", "vectorAdd passed on 1 of 1 GPUs"),
            ("open", "gpu2", "b0", "standard", "GPU-a", "before it rebooted"),
            ("close", "gpu3", "ProofFailed", 'driver "x"\nis\tgone'),
        ]
    )
    result = site.run(node_gate.program(), "record", "1.2.3", stdin=recorded_lines, nodes=nodes)
    assert result.returncode == 0, result.stderr
    first, second, third, fourth = site.state["nodes"]
    assert first["taints"] == []
    assert first["condition"]["message"] == "vectorAdd passed on 1 of 1 GPUs"
    assert second["taints"] == [node_gate.KEY]
    assert "gpu2 stays closed: it rebooted while it was proven" in result.stdout
    assert third["taints"] == [node_gate.KEY]
    assert third["condition"]["message"] == 'driver "x" is gone'
    assert fourth == closed(name="gpu4")


BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize(
    ("node", "arguments", "cordoned"),
    [
        ({"boot": "before"}, (), True),
        ({"boot": BOOT}, (), False),
        ({"boot": BOOT}, ("after",), True),
        (proven(boot=BOOT, annotations={"gpuboot.io/proven-boot": BOOT}), ("after",), False),
        (proven(boot="before"), (), True),
    ],
)
def test_a_node_cordons_itself_when_it_boots(
    site: Site, node: dict[str, Any], arguments: tuple[str, ...], cordoned: bool
) -> None:
    nodes = [{"name": "gpu1", **node}]
    result = site.run(node_gate.boot_program(), "gpu1", *arguments, nodes=nodes, away=3)
    assert result.returncode == 0, result.stderr
    [node_state] = site.state["nodes"]
    assert node_state.get("cordoned", False) is cordoned
    assert (node_state.get("annotations", {}).get(node_gate.CORDON) == BOOT) is cordoned
    assert "connection refused" in result.stderr


def test_at_boot_a_person_s_cordon_stays_the_person_s(site: Site) -> None:
    node = {"name": "gpu1", "boot": "before", "cordoned": True}
    result = site.run(node_gate.boot_program(), "gpu1", nodes=[node])
    assert result.returncode == 0, result.stderr
    assert site.state["nodes"] == [node]
