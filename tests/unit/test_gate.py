"""The gate: what opens and closes nodes, and what belongs to it on hosts and in charts."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuboot.cluster import kubeadm, local_path, node_gate
from gpuboot.cluster.objects import parse_node
from gpuboot.config.inventory import Node
from gpuboot.config.settings import SettingsError, parse_settings
from gpuboot.config.versions import lock
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.charts.monitoring_values import monitoring_values
from gpuboot.verify import gate_outcome as rules
from gpuboot.verify.findings import Finding, FindingBuilder

ON = parse_settings({"gate": {"enabled": True}})
OFF = parse_settings({})
GPU1 = Node("gpu1", "gpu1", "10.0.0.2", "worker", 2, False)
LEADER = Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, True)


def test_a_worker_s_kubelet_waits_and_a_control_plane_s_cannot() -> None:
    [worker] = node_gate.boot_files(GPU1).values()
    assert "Before=kubelet.service\n" in worker
    assert "RequiredBy=kubelet.service\n" in worker
    [single] = node_gate.boot_files(
        Node("cp1", "cp1", "10.0.0.1", "control_plane", 1, True)
    ).values()
    assert "kubelet.service" in single.split("After=")[1].splitlines()[0]
    assert "RequiredBy" not in single
    assert "gpuboot-gate-boot cp1 after\n" in single


def builder(link: str = "workload") -> FindingBuilder:
    return FindingBuilder(link, "vectorAdd by UUID", "gpu1")


BELOW = [builder(link).passed("ok") for link in rules.LINKS if link != "workload"]
B_PASSED = builder().passed("ok", "GPU-b")
NOT_COVERED = builder().not_covered("held by ml/train", "wait", "GPU-b")


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([builder().passed("ok", "GPU-a"), B_PASSED], "open"),
        ([builder().passed("ok", "GPU-a"), NOT_COVERED], "open"),
        ([NOT_COVERED], None),
        ([builder().passed("ok", "GPU-a"), builder().failed("wrong", "swap", "GPU-b")], "close"),
        ([builder().passed("ok", "GPU-a"), builder().unknown("no answer")], None),
        ([builder().passed("ok", "GPU-a"), builder("exporter").failed("down", "see")], "open"),
        ([builder().passed("ok", "GPU-a"), builder("health").failed("remap", "swap")], "close"),
        ([builder().passed("ok", "GPU-a"), builder("health").unknown("no exporter")], "open"),
        ([builder("driver").failed("none loaded", "modprobe")], "close"),
        ([FindingBuilder("workload", "x", "gpu2").passed("ok", "GPU-a")], None),
    ],
)
def test_what_findings_mean_for_a_node(findings: list[Finding], expected: str | None) -> None:
    outcome = rules.outcome("gpu1", "b1", "standard", ["GPU-b", "GPU-a"], [*BELOW, *findings])
    assert (outcome[0] if outcome else None) == expected
    if expected == "open":
        assert outcome is not None
        proven = "GPU-a" if len(findings) == 1 or findings[1] != B_PASSED else "GPU-a,GPU-b"
        assert outcome[:5] == ("open", "gpu1", "b1", "standard", proven)
    if expected == "close":
        assert outcome is not None
        repair = any(item.link == "health" for item in findings)
        assert outcome[2] == ("HealthFailed" if repair else "VerifyFailed")


@pytest.mark.parametrize("link", rules.LINKS)
def test_no_link_below_may_be_missing(link: str) -> None:
    all_of_them = [*BELOW, builder().passed("ok", "GPU-a")]
    without = [item for item in all_of_them if item.link != link]
    assert rules.outcome("gpu1", "b1", "standard", ["GPU-a"], without) is None


def test_the_proof_of_an_upgraded_node_closes_it_for_a_gpu_that_is_gone() -> None:
    passed = [*BELOW, builder().passed("ok", "GPU-a")]
    assert rules.of_node("gpu1", passed, None)[0][:4] == ("open", "gpu1", "", "node")
    outcome = rules.of_node("gpu1", passed, ("GPU-b is gone", "look"))
    assert outcome == [("close", "gpu1", "ProofFailed", "GPU-b is gone")]


def taints(node: Node, **settings: Any) -> Any:
    parsed = parse_settings({"gate": {"enabled": True}, **settings})
    if node.leader:
        text = kubeadm.init_config(parsed, lock(parsed), [node, GPU1])
    else:
        text = kubeadm.join_config(parsed, [LEADER, node], node, "sha256:1", "a.b")
    [document] = [item for item in yaml.safe_load_all(text) if "nodeRegistration" in item]
    return document["nodeRegistration"].get("taints")


def test_new_nodes_are_registered_closed() -> None:
    unproven = {"key": node_gate.KEY, "effect": "NoSchedule"}
    reserved = {"key": node_gate.CONTROL_PLANE, "effect": "NoSchedule"}
    assert taints(GPU1) == [unproven]
    assert taints(Node("c", "c", "10.0.0.3", "worker", 0, False)) is None
    assert taints(LEADER) is None
    with_gpus = Node("cp1", "cp1", "10.0.0.1", "control_plane", 1, True)
    assert taints(with_gpus) == [unproven, reserved]
    anywhere = {"cluster": {"schedule_on_control_plane": True}}
    assert taints(with_gpus, **anywhere) == [unproven]
    assert taints(LEADER, **anywhere) == []


def tolerating(values: Any) -> bool:
    return node_gate.TOLERATION in values["tolerations"]


def test_our_own_pods_come_to_nodes_that_are_not_proven() -> None:
    versions = lock(ON)
    operator = operator_values(ON, versions)
    nfd = operator["node-feature-discovery"]
    assert all(map(tolerating, (operator["daemonsets"], operator["operator"], *nfd.values())))
    assert tolerating(exporter_values(ON, versions))
    stack = monitoring_values(ON)
    assert all(
        map(
            tolerating,
            (
                stack["prometheus"]["prometheusSpec"],
                stack["alertmanager"]["alertmanagerSpec"],
                stack["grafana"],
                stack["kube-state-metrics"],
                stack["prometheusOperator"],
                stack["prometheusOperator"]["admissionWebhooks"]["patch"],
            ),
        )
    )
    assert local_path.local_path(ON, versions).count(node_gate.KEY) == 2
    all_manifests = (
        operator_values(OFF, versions), monitoring_values(OFF), local_path.local_path(OFF, versions)
    )  # fmt: skip
    assert node_gate.KEY not in str(all_manifests)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"gpu_operator": {"time_slices": 2}}, "none could be proven"),
        ({"gpu_operator": {"enabled": False}, "exporter": {"kind": "chart"}}, "device plugin"),
    ],
)
def test_settings_with_which_nothing_could_be_proven_are_refused(
    data: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_settings({"gate": {"enabled": True}, **data})


def test_the_state_of_a_node() -> None:
    item = {
        "metadata": {"name": "gpu1", "annotations": {"gpuboot.io/proven-boot": "b1"}},
        "spec": {"taints": [{"key": node_gate.KEY, "effect": "NoSchedule"}]},
        "status": {
            "nodeInfo": {"bootID": "b1"},
            "conditions": [{"type": node_gate.CONDITION, "status": "True", "reason": "Proven"}],
        },
    }
    state = parse_node(item)
    assert node_gate.is_proven(state)
    assert state.has_taint(node_gate.KEY)
    assert node_gate.is_marked(state)
    assert not node_gate.is_marked(parse_node({"metadata": {"name": "gpu1"}}))
