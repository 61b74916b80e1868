"""Which versions may follow which, by upstream's version skew policy."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.cluster import objects, version_skew
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.deprecated_apis import DeprecatedApi, DeprecatedApis, warnings
from gpuboot.config.inventory import Node

LEADER = Node("cp1", "cp1", "192.0.2.11", "control_plane", gpus=0, leader=True)
WORKER = Node("gpu1.example.com", "gpu1", "192.0.2.21", "worker", gpus=8, leader=False)


def node(name: str, kubelet: str) -> objects.Node:
    return objects.Node(
        name=name,
        versions={"kubelet": f"v{kubelet}"},
        ready=True,
    )


def cluster(server: str = "1.35.4", kubelet: str = "1.35.4", **fields: Any) -> ClusterState:
    nodes = (node("cp1", server), node("gpu1", kubelet))
    return ClusterState(**({"server": server, "nodes": nodes} | fields))


def skew_problems(state: ClusterState, target: str = "1.36.3") -> list[str]:
    return [str(item) for item in version_skew.problems([LEADER, WORKER], target, state)]


@pytest.mark.parametrize(
    ("server", "desired", "step"),
    [
        ("1.36.3", "1.36.3", "none"),
        ("1.36.3", "1.36.10", "patch"),
        ("1.36.10", "1.36.3", "refuse"),
        ("1.35.9", "1.36.3", "minor"),
        ("1.34.9", "1.36.3", "refuse"),
        ("1.37.0", "1.36.3", "refuse"),
        ("1.36.3", "2.0.0", "refuse"),
    ],
)
def test_upgrade_steps(server: str, desired: str, step: str) -> None:
    assert version_skew.upgrade_step(server, desired) == step


@pytest.mark.parametrize(
    "state",
    [
        cluster(),
        cluster("1.36.3", "1.36.3"),
        cluster("1.36.2", "1.35.0"),
        # an upgrade that was interrupted goes on: the leader, or all control planes, are done
        cluster("1.36.3", "1.35.4", api_servers={"cp1": "1.36.3", "cp2": "1.35.4"}),
        cluster("1.36.3", "1.35.4", api_servers={"cp1": "1.36.3"}),
        cluster("1.35.4", "1.33.0"),
        cluster(etcd={"cp1": "3.6.6-0"}),
        cluster(etcd={"cp1": "3.5.24-0"}),
        cluster(etcd={"cp1": "latest"}, api_servers={"cp1": ""}),
    ],
)
def test_what_upstream_allows_passes(state: ClusterState) -> None:
    assert skew_problems(state) == []


def test_a_control_plane_does_not_go_back() -> None:
    [problem] = skew_problems(cluster("1.36.3", "1.35.4"), "1.35.4")
    assert (
        "runs Kubernetes 1.36.3, the version lock asks for 1.35.4: a control plane cannot"
        in problem
    )
    assert "remedy: set versions.kubernetes to 1.36.3 or newer" in problem


def test_nor_half_of_it_after_an_interrupted_upgrade() -> None:
    servers = {"cp1": "1.36.3", "cp2": "1.35.4"}
    [problem] = skew_problems(cluster("1.35.4", api_servers=servers), "1.35.4")
    assert "runs Kubernetes 1.36.3 on cp1, the version lock asks for 1.35.4" in problem


def test_no_minor_release_is_skipped() -> None:
    [problem] = skew_problems(cluster("1.34.4", "1.34.4"))
    assert "an upgrade may not skip 1.35" in problem
    assert "remedy: set versions.kubernetes to the newest release of 1.35 and run" in problem


def test_the_slowest_api_server_counts() -> None:
    servers = {"cp1": "1.35.4", "cp2": "1.34.4"}
    [problem] = skew_problems(cluster(api_servers=servers))
    assert "runs Kubernetes 1.34.4 on cp2" in problem


def test_a_kubelet_is_not_downgraded() -> None:
    [problem] = skew_problems(cluster("1.36.3", "1.36.4"))
    assert "[gpu1.example.com] its kubelet is 1.36.4, the version lock asks for 1.36.3" in problem
    assert "deploys/remove.py --data gpuboot_remove=gpu1, then run again" in problem


def test_a_node_of_others_may_be_newer() -> None:
    assert skew_problems(cluster(nodes=(node("cp1", "1.35.4"), node("theirs", "1.36.4")))) == []


def test_a_kubelet_is_at_most_three_minor_releases_older() -> None:
    [own_problem] = skew_problems(cluster(kubelet="1.32.9"))
    assert "node gpu1 runs kubelet 1.32.9; API servers of 1.36.3 work with kubelets from 1.33" in (
        own_problem
    )
    assert "set versions.kubernetes to 1.35.4 and run" in own_problem
    [other_problem] = skew_problems(cluster(nodes=(node("theirs", "1.32.9"),)))
    assert "kubectl delete node theirs" in other_problem


@pytest.mark.parametrize(
    ("etcd", "expected"),
    [
        ("3.7.1-0", "etcd cannot go back to an earlier minor release"),
        ("3.5.16-0", "which may only follow 3.5.20 or newer"),
    ],
)
def test_etcd_follows_etcd(etcd: str, expected: str) -> None:
    [problem] = skew_problems(cluster(etcd={"cp1": etcd}))
    assert f"etcd of cp1 is {etcd}, and kubeadm 1.36.3 brings 3.6.8-0" in problem
    assert expected in problem
    assert "remedy: " in problem


def test_what_an_upgrade_brings_besides() -> None:
    state = cluster(etcd={"cp1": "3.6.6-0"}, coredns="v1.13.1")
    assert version_skew.differences(state, "1.36.3") == [
        ("etcd", "3.6.6-0", "3.6.8-0"),
        ("CoreDNS", "v1.13.1", "v1.14.2"),
    ]
    assert version_skew.differences(cluster(etcd={"cp1": "3.6.10-0"}), "1.36.3") == []
    assert version_skew.differences(state, "1.50.0") == []


@pytest.mark.parametrize(
    ("servers", "step"),
    [
        ({}, "minor"),
        ({"cp1": "1.36.3", "cp2": "1.35.4"}, "minor"),
        ({"cp1": "1.36.3"}, "none"),
    ],
)
def test_the_step_of_a_whole_cluster(servers: dict[str, str], step: str) -> None:
    assert version_skew.planned_step(cluster(api_servers=servers), "1.36.3") == step


def test_deprecated_apis_are_named_once_if_the_new_release_lacks_them() -> None:
    removed_api = DeprecatedApi("policy", "v1beta1", "podsecuritypolicies", "1.36")
    stable_api = DeprecatedApi("", "v1", "endpoints", "")
    later = DeprecatedApi("batch", "v1beta7", "jobs", "1.37")
    answers = {
        "cp1": DeprecatedApis(apis=(removed_api, later, stable_api)),
        "cp2": DeprecatedApis(apis=(removed_api,)),
        "cp3": DeprecatedApis("curl: (7) Failed to connect"),
    }
    unknown, deprecation = warnings(answers, "1.36.3")
    assert unknown.startswith("cp3: ")
    assert deprecation.startswith("podsecuritypolicies of policy/v1beta1 has been asked for")
    assert "Kubernetes 1.36 has it no more; remedy: " in deprecation
