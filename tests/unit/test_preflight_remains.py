"""Preflight names what others left, with what it is, and what a person can do without losing it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.remains import EtcdData, EtcdProcess, KubeletState, Remains
from gpuboot.preflight.preflight_checks import evaluate
from gpuboot.preflight.remains_problems import warnings
from tests.unit.test_preflight import CLEAN, LEADER, WORKER

NOW = CLEAN.clock
DAY = 86400
DATA = EtcdData(20 * 1024, NOW - 3 * DAY, ("member",))
PKI = "keys of a cluster in /etc/kubernetes/pki (/etc/kubernetes/pki/ca.crt: CN=theirs)"


def problems(
    node: Node = WORKER, settings: dict[str, Any] | None = None, /, **remains: Any
) -> list[Problem]:
    parsed = parse_settings(settings or {})
    state = replace(CLEAN, remains=Remains(**remains))
    return evaluate([node], {node.host: state}, parsed, versions.lock(parsed))


def test_an_etcd_where_the_control_planes_own_would_be() -> None:
    (problem,) = problems(LEADER, etcd_data=DATA)
    assert problem.cause == (
        "/var/lib/etcd has data of an etcd (member: 20 MiB, last written 3 days ago), which "
        "gpuboot did not make"
    )
    assert "mv /var/lib/etcd/* /var/lib/etcd-before-gpuboot/" in problem.remedy
    assert " rm " not in problem.remedy


@pytest.mark.parametrize(
    ("seconds", "age"),
    [(0, "just now"), (-5, "just now"), (200, "3 minutes ago"), (7300, "2 hours ago")],
)
def test_how_long_ago_it_was_written(seconds: float, age: str) -> None:
    (problem,) = problems(LEADER, etcd_data=replace(DATA, written_at=NOW - seconds))
    assert f"last written {age})" in problem.cause


def test_an_etcd_that_runs_is_stopped_first() -> None:
    process = EtcdProcess("etcd.service", "/var/lib/etcd/default")
    (problem,) = problems(LEADER, etcd_data=DATA, etcd_processes=(process,))
    assert "etcd.service (data in /var/lib/etcd/default) runs" in problem.cause
    assert (
        "stop it (`systemctl disable --now etcd.service`) and put its data aside" in problem.remedy
    )


def test_a_disk_for_etcd() -> None:
    (problem,) = problems(LEADER, etcd_data=EtcdData(16, 0, ("lost+found",)))
    assert "lost+found" in problem.cause
    assert "rmdir /var/lib/etcd/lost+found" in problem.remedy


def test_a_worker_with_somebodys_etcd_is_told_and_left_alone() -> None:
    process = EtcdProcess("etcd.service", "/srv/etcd")
    remains: dict[str, Any] = {"etcd_data": DATA, "etcd_processes": (process,)}
    assert problems(WORKER, **remains) == []
    state = replace(CLEAN, remains=Remains(**remains))
    assert warnings([WORKER], {"gpu1": state}) == [
        "[gpu1] an etcd that gpuboot did not make is there: etcd.service (data in /srv/etcd) runs; "
        "/var/lib/etcd has data of an etcd (member: 20 MiB, last written 3 days ago); a worker "
        "needs none, and a run leaves it alone"
    ]
    assert warnings([LEADER, WORKER], {"cp1": state, "gpu1": CLEAN}) == []
    assert warnings([WORKER], {}) == []


@pytest.mark.parametrize("node", [LEADER, WORKER])
@pytest.mark.parametrize(
    ("remains", "part"),
    [
        ({"pki": PKI}, "CN=theirs"),
        ({"manifests": ("kube-vip.yaml", "etcd.yaml")}, "(kube-vip.yaml, etcd.yaml)"),
        (
            {"credentials": {"/etc/kubernetes/kubelet.conf": "https://10.1.1.1:6443"}},
            "/etc/kubernetes/kubelet.conf for https://10.1.1.1:6443",
        ),
        ({"kubelet": KubeletState(12, NOW - 30 * DAY)}, "(12 pods), changed 30 days ago"),
    ],
)
def test_parts_of_a_cluster_on_every_role(node: Node, remains: dict[str, Any], part: str) -> None:
    (problem,) = problems(node, **remains)
    assert part in problem.cause
    is_node = "kubelet" in part or "kubelet" in remains
    command = "kubeadm reset --skip-phases=remove-etcd-member" if is_node else "mv /etc/kubernetes"
    assert command in problem.remedy
    assert "/etc/kubernetes-before-gpuboot" in problem.remedy


def test_a_mark_of_an_earlier_version_beside_them() -> None:
    parsed = parse_settings({})
    state = replace(CLEAN, half_made=("init",), remains=Remains(pki=PKI))
    (problem,) = evaluate([LEADER], {"cp1": state}, parsed, versions.lock(parsed))
    assert "a kubeadm init of an earlier version of gpuboot did not end there" in problem.cause


def test_a_cluster_that_gpuboot_did_not_make_is_one_problem_each() -> None:
    """Its certificate authority is no reason to think that the leader has left it."""
    parsed = parse_settings({})
    foreign = Remains(pki=PKI)
    states = {
        "cp1": CLEAN,
        "gpu1": replace(CLEAN, cluster_ca="theirs", remains=foreign, addresses=("10.0.0.6",),
                        machine_id="2", boot_id="2"),
    }  # fmt: skip
    nodes = [LEADER, replace(WORKER, address="10.0.0.6")]
    (problem,) = evaluate(nodes, states, parsed, versions.lock(parsed))
    assert (problem.host, PKI in problem.cause) == ("gpu1", True)


@pytest.mark.parametrize(
    "name", ["05-cilium.conflist", "00-multus.conf", "10-containerd-net.conflist", ".x.json"]
)
def test_a_pod_network_that_containerd_would_take_first(name: str) -> None:
    """As containerd 2.4.2 did in a trial: the first by name, hidden files as well."""
    (problem,) = problems(cni_files={name: "bridge", "87-podman-bridge.conflist": "bridge"})
    assert f"/etc/cni/net.d/{name} (plugin bridge)" in problem.cause
    assert f"mv /etc/cni/net.d/{name} /root/cni-before-gpuboot/" in problem.remedy


def test_those_that_come_later_harm_nothing() -> None:
    later = ("87-podman-bridge.conflist", "100-crio-bridge.conflist", "nerdctl-bridge.conflist")
    assert problems(cni_files=dict.fromkeys(later, "bridge")) == []


def test_another_folder_for_them() -> None:
    (problem,) = problems(cni_folders=("/etc/other/", "/etc/cni/net.d"))
    assert "conf_dir = /etc/other/" in problem.cause


def test_network_devices() -> None:
    (problem,) = problems(links=("tunl0", "vxlan.calico"))
    assert "another pod network are there: tunl0, vxlan.calico" in problem.cause
    assert "`ip address flush dev tunl0`, `ip link delete vxlan.calico`" in problem.remedy
    (problem,) = problems(links=tuple(f"cali{number}" for number in range(9)))
    assert problem.cause.endswith("cali0, cali1, cali2, …")


@pytest.mark.parametrize(
    ("network", "key"),
    [
        ("10.244.5.0/26", "pod_cidr"),
        ("10.244.0.0/16", "pod_cidr"),
        ("10.0.0.0/8", "service_cidr"),  # flannel's routes are narrower, and Services have none
        ("10.96.0.1", "service_cidr"),
    ],
)
def test_routes_that_drop_what_the_cluster_sends(network: str, key: str) -> None:
    (problem,) = problems(dead_routes=((network, "blackhole"),))
    assert f"which is in cluster.{key}" in problem.cause
    assert "ip route delete blackhole 10." in problem.remedy


def test_a_sites_own_dead_routes() -> None:
    assert (
        problems(dead_routes=(("192.0.2.0/24", "blackhole"), ("172.16.0.0/12", "prohibit"))) == []
    )
