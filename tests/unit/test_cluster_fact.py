"""The facts about the cluster, as a shell runs them beside an API server that answers."""

from __future__ import annotations

import base64
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.cluster.objects_fact import Managed
from deploys.parts.helm.fact import HelmRelease
from gpuboot.cluster import cluster_answers as api
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.objects import parse_node
from tests.cluster_answers import CLOCK, cluster, item_list, lease, make_object, packed, served

RECORD = "kubernetesVersion: v1.36.3\nnetworking:\n  podSubnet: 10.244.0.0/16\n"
SECRETS = "/api/v1/namespaces/w/secrets"


def waiting(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason}}}


def scheduled(message: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}


GPU1 = make_object(
    "gpu1",
    labels={"gpuboot.io/gpus": "2"},
    spec={
        "taints": [{"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"}],
        "podCIDRs": ["10.244.1.0/24"],
    },
    status={
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.2"},
            {"type": "Hostname", "address": "gpu1"},
        ],
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
        "conditions": [{"type": "Ready", "status": "False", "message": "no CNI"}],
        "allocatable": {"nvidia.com/gpu": "2"},
    },
)
FLANNEL = make_object(
    "kube-flannel-ds",
    "kube-flannel",
    annotations={"gpuboot.io/sha256": "abc"},
    generation=1,
    status={
        "desiredNumberScheduled": 3,
        "numberReady": 2,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
    },
)
DISCOVERY = make_object(
    "gpu-feature-discovery",
    "gpu-operator",
    labels={"helm.sh/chart": "gpu-operator-v26.7.0"},
    spec={"template": {"spec": {"containers": []}}},
)
COREDNS = make_object(
    "coredns",
    "kube-system",
    generation=2,
    spec={"replicas": 2},
    status={"observedGeneration": 1, "readyReplicas": 1, "updatedReplicas": 2},
)
COMING_UP = cluster(
    RECORD,
    VERSION={"gitVersion": "v1.36.3"},
    NODES=item_list(GPU1),
    LEASES=item_list(lease("gpu1", age_s=4)),
    NAMESPACES=item_list(make_object("kube-flannel", labels={"a": "b"})),
    CLASSES=item_list(
        make_object(
            "local-path",
            annotations={"storageclass.kubernetes.io/is-default-class": "true"},
        ),
        make_object("slow"),
    ),
    RUNTIMES=item_list(make_object("nvidia", handler="nvidia")),
    POLICIES=item_list(make_object("cluster-policy", status={"state": "notReady"})),
    FLANNEL=make_object(
        "kube-flannel-cfg", data={"net-conf.json": '{"Backend": {"Type": "vxlan"}}'}
    ),
    SERVICES=item_list(
        make_object("web", "shop", spec={"ports": [{"port": 1, "nodePort": 30080}, {"port": 2}]}),
        make_object("headless", "shop", spec={}),
    ),
) | {
    api.WORKLOADS["DaemonSet"]: item_list(FLANNEL, DISCOVERY),
    api.WORKLOADS["Deployment"]: item_list(COREDNS),
}


def read_cluster(folder: Path, answers: dict[str, Any]) -> ClusterState:
    with served(folder, answers) as host:
        host.log.unlink(missing_ok=True)
        state: ClusterState = host.read(Cluster(), kubeconfig=str(host.kubeconfig))
        assert host.log.read_text().count("\n") == 1  # one curl for all of it
    return state


def test_a_cluster_that_comes_up(tmp_path: Path) -> None:
    cluster_state = read_cluster(tmp_path, COMING_UP)
    assert cluster_state.nodes == (replace(parse_node(GPU1), reported=CLOCK - 4),)
    state = asdict(replace(cluster_state, nodes=()))
    assert state.pop("nodes") == ()
    assert abs(state.pop("clock") - time.time()) < 60
    keys = ("kind", "name", "desired", "ready", "observed", "digest")
    assert [tuple(item[key] for key in keys) for item in state.pop("workloads")] == [
        ("DaemonSet", "kube-flannel-ds", 3, 2, True, "abc"),
        ("DaemonSet", "gpu-feature-discovery", 0, 0, True, ""),
        ("Deployment", "coredns", 2, 1, False, ""),
    ]
    [operand] = state.pop("operands")
    assert (operand["namespace"], operand["name"]) == ("gpu-operator", "gpu-feature-discovery")
    assert operand["chart"] == "gpu-operator-v26.7.0"
    assert operand["template"] == {"spec": {"containers": []}}
    assert state.pop("immutable")["cluster.pod_cidr"] == "10.244.0.0/16"
    assert not any(state.pop(key) for key in ("api_servers", "etcd", "terminating"))
    assert state == {
        "error": "",
        "server": "1.36.3",
        **dict.fromkeys(("config", "coredns", "rejection", "metrics_service"), ""),
        "recorded": "1.36.3",
        "namespaces": {"kube-flannel": {"a": "b"}},
        **dict.fromkeys(("pod_issues", "serving_requests"), ()),
        "policy": "notReady",
        "classes": {"local-path": True, "slow": False},
        "runtimes": {"nvidia": "nvidia"},
        "flannel_backend": "vxlan",
        "node_ports": {"30080": "shop/web"},
        "absent": (),
    }


def test_before_flannel_and_the_gpu_operator_are_there(tmp_path: Path) -> None:
    state = read_cluster(tmp_path, cluster())
    assert (state.error, state.policy, state.flannel_backend) == ("", "", "")
    without = read_cluster(tmp_path, {**cluster(), api.KUBEADM: None})
    assert (without.error, without.recorded) == ("", "")


def test_what_must_be_there_and_is_not_is_an_error(tmp_path: Path) -> None:
    forbidden = {"code": 403, "message": "nodes is forbidden"}
    assert read_cluster(tmp_path, {**cluster(), api.NODES: forbidden}).error == (
        "/api/v1/nodes: nodes is forbidden"
    )


def test_a_server_that_is_down_is_no_empty_cluster(tmp_path: Path) -> None:
    with served(tmp_path, cluster()) as host:
        pass
    config = str(host.kubeconfig)
    for fact in (Cluster(), Managed()):
        assert "connect" in host.read(fact, kubeconfig=config).error
    release = host.read(HelmRelease(), release="web", namespace="w", kubeconfig=config)
    assert "connect" in release.error


def test_a_host_without_a_cluster(tmp_path: Path) -> None:
    with served(tmp_path, cluster()) as host:
        host.kubeconfig.unlink()
        for fact in (Cluster(), Managed()):
            state = host.read(fact, kubeconfig=str(host.kubeconfig))
            assert state.error == "there is no cluster yet"
        assert not host.log.exists()


def test_the_administrators_key_is_no_argument_and_stays_nowhere(tmp_path: Path) -> None:
    with served(tmp_path, cluster()) as host:
        host.run(Cluster().command(str(host.kubeconfig)))
        text = host.kubeconfig.read_text()
        key = text.partition("client-key-data: ")[2].split()[0]
        log_text = host.log.read_text()
        folder = Path(log_text.partition("--key ")[2].split()[0]).parent
    assert base64.b64decode(key).decode() not in log_text
    assert key not in log_text
    assert folder.name.startswith(("gpuboot.", "tmp."))
    assert not folder.exists()


def test_pods_that_do_not_start_by_waiting(tmp_path: Path) -> None:
    pods = item_list(
        make_object(
            "starting",
            "a",
            spec={"nodeName": "gpu1"},
            status={"containerStatuses": [waiting("main", "ContainerCreating")]},
        ),
        make_object(
            "crashing",
            "a",
            spec={"nodeName": "gpu1"},
            status={
                "initContainerStatuses": [{"name": "init", "state": {"terminated": {}}}],
                "containerStatuses": [waiting("main", "CrashLoopBackOff")],
            },
        ),
        make_object("homeless", "a", spec={}, status=scheduled("0/2 nodes are available")),
        *(
            make_object(name, "a", spec={"nodeName": "gpu2"}, status={"phase": "Running", **ready})
            for name, ready in (("silent", is_ready("False")), ("well", is_ready("True")))
        ),
    )
    with served(tmp_path, {api.PODS: pods}) as host:
        issues = host.read(PodIssues(), kubeconfig=str(host.kubeconfig))
    assert issues == (
        PodIssue("a", "crashing", "gpu1", "CrashLoopBackOff in main", kind="crash"),
        PodIssue("a", "homeless", "", "0/2 nodes are available", kind="unscheduled"),
        PodIssue("a", "silent", "gpu2", ""),
    )


def is_ready(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status}]}


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1}, 0),  # the old one is ready
        ({"replicas": 2, "updatedReplicas": 1, "readyReplicas": 2}, 1),
        ({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}, 1),
        ({"replicas": 1, "updatedReplicas": 0, "readyReplicas": 1}, 0),
        ({}, 0),
    ],
)
def test_an_old_pod_is_not_taken_for_its_successor(
    tmp_path: Path, status: dict[str, int], ready: int
) -> None:
    web = make_object("web", "w", spec={"replicas": 1}, status=status)
    state = read_cluster(tmp_path, {**cluster(), api.WORKLOADS["Deployment"]: item_list(web)})
    assert [item.current for item in state.workloads] == [ready]


def test_half_an_answer_is_none() -> None:
    lines = packed(cluster())
    with pytest.raises(ValueError, match="ends early"):
        api.parse_cluster(lines[:-1])
    with pytest.raises(ValueError, match="not whole"):
        api.parse_cluster(packed({api.VERSION: {}}))


def control_plane_pod(component: str, node: str, image: str) -> dict[str, Any]:
    return make_object(
        f"{component}-{node}",
        "kube-system",
        labels={"component": component, "tier": "control-plane"},
        spec={"nodeName": node, "containers": [{"name": component, "image": image}]},
    )


def test_which_versions_the_control_planes_run(tmp_path: Path) -> None:
    coredns = {"containers": [{"image": "mirror.example:5000/coredns/coredns:v1.13.1"}]}
    answers = cluster(
        CONTROL_PLANE=item_list(
            control_plane_pod("kube-apiserver", "cp1", "registry.k8s.io/kube-apiserver:v1.36.3"),
            control_plane_pod("kube-apiserver", "cp2", "m.example:5000/kube-apiserver:v1.35.4"),
            control_plane_pod("kube-scheduler", "cp1", "registry.k8s.io/kube-scheduler:v1.36.3"),
            control_plane_pod("etcd", "cp1", "registry.k8s.io/etcd:3.6.8-0@sha256:00"),
            control_plane_pod("etcd", "cp2", "registry.k8s.io/etcd@sha256:00"),
        )
    ) | {
        api.WORKLOADS["Deployment"]: item_list(
            make_object("coredns", "kube-system", spec={"template": {"spec": coredns}})
        )
    }
    state = read_cluster(tmp_path, answers)
    assert state.api_servers == {"cp1": "1.36.3", "cp2": "1.35.4"}
    assert state.etcd == {"cp1": "3.6.8-0", "cp2": ""}
    assert state.coredns == "v1.13.1"
