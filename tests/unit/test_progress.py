"""How far a cluster is, and what follows from the facts about it."""

from dataclasses import replace

import pytest

from gpuboot.cluster import readiness
from gpuboot.cluster.cluster_state import (
    ClusterState,
    KubeadmState,
    PodIssue,
    belongs_elsewhere,
    immutable_changes,
    parse_kubeadm,
    stage,
)
from gpuboot.cluster.objects import Node
from gpuboot.cluster.workloads import Workload
from gpuboot.hosts.fact_output import FactOutputError
from gpuboot.hosts.gpu_sharing import Offer

READY = Node(
    name="cp1",
    address="10.0.0.1",
    versions={"kubelet": "v1.36.3"},
    ready=True,
    message="",
    allocatable={},
    labels={},
    taints=(),
)
GPU = Node(
    name="gpu1",
    address="10.0.0.2",
    versions={"kubelet": "v1.36.3"},
    ready=True,
    message="",
    allocatable={"nvidia.com/gpu": "2"},
    labels={},
    taints=(),
)
PLUGIN = Workload("DaemonSet", "gpu-operator", "plugin", 2, 2, True, "")
DOWN = ClusterState(error="connection refused")
TWO = Offer({"nvidia.com/gpu": 2})


def test_nodes_ready() -> None:
    state = ClusterState(nodes=(READY, replace(GPU, ready=False, message="no CNI")))
    look = readiness.nodes_ready(state, ["cp1", "gpu1", "gpu2"])
    assert not look.complete
    assert look.text == "1 of 3 nodes Ready; not yet: gpu1 (no CNI); gpu2 (unknown)"
    assert readiness.nodes_ready(ClusterState(nodes=(READY, GPU)), ["cp1", "gpu1"]).complete


def test_a_dead_kubelets_node_is_not_ready_though_the_api_server_still_says_so() -> None:
    alive, dead = replace(READY, reported=991.0), replace(GPU, reported=968.0)
    state = ClusterState(nodes=(alive, dead), clock=1000.0)
    look = readiness.nodes_ready(state, ["cp1", "gpu1"])
    assert not look.complete
    assert look.text.endswith("not yet: gpu1 (its kubelet has not reported for 32 s)")
    assert readiness.nodes_ready(state, ["cp1"]).complete


def test_a_restarted_kubelet_has_to_report_again() -> None:
    state = ClusterState(nodes=(replace(READY, reported=1005.0),), clock=1006.0)
    assert readiness.nodes_ready(state, ["cp1"], since=1004.0).complete
    assert not readiness.nodes_ready(state, ["cp1"], since=1005.0).complete
    assert not readiness.kubelet_is(state, "cp1", "1.36.3", since=1005.0).complete


def test_one_node_is_enough_for_pods_to_start() -> None:
    state = ClusterState(nodes=(replace(READY, ready=False, message="no CNI"), GPU))
    assert readiness.any_ready(state, ["cp1", "gpu1"]).complete
    look = readiness.any_ready(state, ["cp1", "gpu2"])
    assert not look.complete
    assert look.text == "0 of 2 nodes Ready; not yet: cp1 (no CNI); gpu2 (unknown)"


def test_the_network_is_ready_when_it_runs_on_every_node() -> None:
    flannel = Workload("DaemonSet", "kube-flannel", "kube-flannel-ds", 2, 2, True, "")
    system = [
        Workload("DaemonSet", "kube-system", "kube-proxy", 2, 2, True, ""),
        Workload("Deployment", "kube-system", "coredns", 2, 2, True, ""),
    ]
    state = ClusterState(nodes=(READY, GPU), workloads=(flannel, *system))
    assert readiness.network_ready(state, ["cp1", "gpu1"]).complete
    short = replace(state, workloads=(replace(flannel, ready=1), *system))
    look = readiness.network_ready(short, ["cp1", "gpu1"])
    assert not look.complete
    assert "kube-flannel-ds (1 of 2 nodes)" in look.text


def test_the_gpu_operator_is_ready_with_its_policy_and_all_gpus() -> None:
    state = ClusterState(nodes=(READY, GPU), workloads=(PLUGIN,), policy="ready")
    assert readiness.operator_ready(
        state, "gpu-operator", {"plugin": 2}, {"gpu1": TWO}, {}
    ).complete
    for broken in (
        replace(state, policy="notReady"),
        replace(state, workloads=(replace(PLUGIN, ready=1),)),
        replace(state, nodes=(READY, replace(GPU, allocatable={}))),
    ):
        look = readiness.operator_ready(broken, "gpu-operator", {"plugin": 2}, {"gpu1": TWO}, {})
        assert not look.complete
    without = replace(state, policy="")
    assert readiness.operator_ready(without, "gpu-operator", {"plugin": 2}, {}, {}).complete


@pytest.mark.parametrize(
    ("node", "but", "ready"),
    [("gpu1", "manager", True), ("gpu1", "plugin", False), ("gpu2", "manager", False)],
)
def test_a_node_whose_layout_changes_may_hold_up_all_but_who_changes_it(
    node: str, but: str, ready: bool
) -> None:
    crashing = PodIssue("gpu-operator", "plugin-x7k2p", "gpu1", "invalid MIG configuration")
    state = ClusterState(workloads=(replace(PLUGIN, ready=0),), pod_issues=(crashing,))
    visible_state = readiness.held_up(state, [node], but)
    assert (
        readiness.operator_ready(visible_state, "gpu-operator", {"plugin": 2}, {}, {}).complete
        is ready
    )


def test_workloads_ready() -> None:
    state = ClusterState(workloads=(PLUGIN,))
    assert readiness.workloads_ready(state, "gpu-operator", {"plugin": 2}).complete
    short = ClusterState(workloads=(replace(PLUGIN, ready=1),))
    look = readiness.workloads_ready(short, "gpu-operator")
    assert look.text == "0 of 1 workloads in gpu-operator ready; not yet: plugin (1 of 2 nodes)"


@pytest.mark.parametrize(
    "workload",
    [
        replace(PLUGIN, observed=False),
        replace(PLUGIN, desired=0, ready=0),  # a DaemonSet that no node matches
        replace(PLUGIN, namespace="elsewhere"),
    ],
)
def test_workloads_that_only_look_ready(workload: Workload) -> None:
    state = ClusterState(workloads=(workload,))
    assert not readiness.workloads_ready(state, "gpu-operator", {"plugin": 2}).complete


def test_an_empty_namespace_is_not_ready() -> None:
    assert not readiness.workloads_ready(ClusterState(), "gpu-operator").complete


@pytest.mark.parametrize(
    ("allocatable_gpus", "ready"), [("2", True), ("1", False), ("3", False), ("0", False)]
)
def test_gpus_allocatable(allocatable_gpus: str, ready: bool) -> None:
    node = replace(GPU, allocatable={"nvidia.com/gpu": allocatable_gpus})
    look = readiness.gpus_allocatable(ClusterState(nodes=(node,)), {"gpu1": TWO})
    assert look.complete is ready


def test_nodes_cut_by_mig_are_left_to_the_verification() -> None:
    node = replace(GPU, allocatable={}, labels={"nvidia.com/mig.config": "all-1g.10gb"})
    state = ClusterState(nodes=(node,))
    assert readiness.gpus_allocatable(state, {"gpu1": TWO}).complete
    undivided = replace(node, labels={"nvidia.com/mig.config": "all-disabled"})
    state = ClusterState(nodes=(undivided,))
    assert not readiness.gpus_allocatable(state, {"gpu1": TWO}).complete


def test_a_silent_api_server_is_never_done() -> None:
    for look in (
        readiness.nodes_ready(DOWN, []),
        readiness.workloads_ready(DOWN, "x"),
        readiness.gpus_allocatable(DOWN, {}),
        readiness.policy_ready(DOWN),
    ):
        assert not look.complete


def test_together_tells_what_is_missing() -> None:
    good, bad = readiness.Progress(True, "a"), readiness.Progress(False, "b")
    assert readiness.all_of(good, bad) == readiness.Progress(False, "b")
    assert readiness.all_of(good, good) == readiness.Progress(True, "a | a")


def test_kubelet_is() -> None:
    state = ClusterState(nodes=(READY,))
    assert readiness.kubelet_is(state, "cp1", "1.36.3").complete
    assert (
        readiness.kubelet_is(state, "cp1", "1.36.4").text == "cp1 runs kubelet 1.36.3, not 1.36.4"
    )


def test_stages() -> None:
    assert stage(KubeadmState(), "init") == "none"
    assert stage(KubeadmState(files=("admin.conf", "kubelet.conf")), "init") == "done"
    assert stage(KubeadmState(files=("admin.conf",), started=("init",)), "init") == "begun"
    assert stage(KubeadmState(files=("kubelet.conf",)), "init") == "foreign"
    assert stage(KubeadmState(files=("kubelet.conf",)), "join") == "done"
    assert stage(KubeadmState(files=("admin.conf",)), "join") == "foreign"


def test_other_clusters_are_told_apart() -> None:
    assert belongs_elsewhere(KubeadmState(ca="sha256:a"), "sha256:b")
    assert not belongs_elsewhere(KubeadmState(ca="sha256:a"), "sha256:a")
    assert not belongs_elsewhere(KubeadmState(), "sha256:a")


def test_answers_that_end_early_are_errors() -> None:
    with pytest.raises(FactOutputError):
        parse_kubeadm(["kubeconfig\tabsent"])


def test_what_cannot_be_changed_any_more() -> None:
    recorded_settings = {"cluster.pod_cidr": "10.244.0.0/16", "cluster.endpoint": ""}
    assert immutable_changes(recorded_settings, dict(recorded_settings)) == []
    assert immutable_changes({}, recorded_settings) == []
    assert immutable_changes(
        recorded_settings, {**recorded_settings, "cluster.endpoint": "api:6443"}
    ) == ["cluster.endpoint is not set, the settings ask for api:6443"]


def test_why_a_workload_is_not_ready() -> None:
    issues = (
        PodIssue("gpu-operator", "plugin-x", "gpu1", "ImagePullBackOff in plugin"),
        PodIssue("elsewhere", "other", "gpu1", "CrashLoopBackOff in other"),
    )
    state = ClusterState(workloads=(replace(PLUGIN, ready=0),), pod_issues=issues)
    look = readiness.workloads_ready(state, "gpu-operator")
    assert look.text.endswith("(0 of 2 nodes); plugin-x on gpu1: ImagePullBackOff in plugin")
