"""Preflight names what is wrong with a machine, and nothing that is right."""

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.node_state import Unit, parse
from gpuboot.hosts.pci import PciDevice
from gpuboot.hosts.secure_boot import SecureBootState
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_node_state import ANSWER

LOCKED = versions.lock(parse_settings({})).driver.version

H100, T4, P100, GB200 = 0x2330, 0x1EB8, 0x15F8, 0x2941


def gpu(device: int, slot: int = 0) -> PciDevice:
    return PciDevice(f"0000:{slot:02x}:00.0", device, "0x030200")


CLEAN = replace(
    parse(ANSWER),
    uid=0,
    modules=frozenset(),
    secure_boot=SecureBootState(),
    driver_loaded="",
    packages={},
    package_lock_holders=(),
    cloud_init="done",
    swap=(),
    ports={22: "sshd"},
    kubeconfigs={},
    pci=(gpu(H100),),
    routes=(("10.0.0.0/24", "eth0"),),
)
WORKER = Node("gpu1", "gpu1", "10.0.0.5", "worker", gpus=1, leader=False)
LEADER = Node("cp1", "cp1", "10.0.0.5", "control_plane", gpus=1, leader=True)


def causes(
    node: Node = WORKER, settings: dict[str, Any] | None = None, **changes: Any
) -> list[str]:
    parsed = parse_settings(settings or {})
    state = replace(CLEAN, **changes)
    return [p.cause for p in evaluate([node], {node.host: state}, parsed, versions.lock(parsed))]


def test_a_clean_machine_passes() -> None:
    assert causes() == []
    assert causes(LEADER) == []


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"uid": 1000}, "uid 1000"),
        ({"arch": "riscv64"}, "architecture is riscv64"),
        ({"os_id": "fedora", "os_name": "Fedora 43"}, "runs Fedora 43"),
        ({"cpus": 1}, "has 1 CPUs; 2 are needed"),
        ({"memory_mib": 2000}, "has 2000 MiB of memory"),
        ({"kernel_features": frozenset({"overlay"})}, "lacks br_netfilter"),
        ({"cgroup": 1}, "cgroup v1"),
        ({"kernel": "5.10.0-1"}, "too old for kube-proxy's nftables"),
        ({"clock_skew_s": 61.2}, "clock is 61 s ahead of"),
        ({"clock_skew_s": -7.0}, "clock is 7 s behind"),
        ({"package_lock_holders": ("dpkg (pid 5)",)}, "still in use by dpkg (pid 5)"),
        ({"cloud_init": "running"}, "cloud-init is still running"),
        ({"units": {"crio": Unit("active", "enabled")}}, "CRI-O runs"),
        ({"units": {"k3s": Unit("active", "enabled")}}, "another Kubernetes runs there: k3s"),
        ({"units": {"k3s": Unit("failed", "enabled")}}, "another Kubernetes starts at boot there"),
        ({"foreign": ("microk8s",)}, "microk8s"),
        ({"pci": ()}, "promises 1 GPUs, the PCI bus shows 0"),
        ({"pci": (gpu(H100), gpu(H100, 1))}, "shows 2 GPUs (2 x H100 SXM5 80GB), the inventory"),
        ({"pci": (gpu(P100),)}, "driver branch 595 has dropped Pascal"),
        ({"remnants": ("/usr/bin/nvidia-uninstall",)}, ".run installer"),
        ({"headers": "missing"}, "no kernel headers for the running kernel"),
        ({"secure_boot": SecureBootState(enforced=True)}, "Secure Boot is on"),
        ({"addresses": ("10.0.0.9",)}, "address 10.0.0.5 is not on the machine"),
        ({"ports": {10250: "nginx"}}, "TCP port 10250 is in use by nginx; kubelet needs it"),
        ({"ports": {10250: "?"}}, "in use by an unknown process"),
        ({"routes": (("10.244.0.0/24", "eth1"),)}, "cluster.pod_cidr 10.244.0.0/16 overlaps"),
        ({"routes": (("10.97.3.0/24", "eth1"),)}, "cluster.service_cidr 10.96.0.0/12 overlaps"),
    ],
)
def test_one_thing_wrong_is_one_problem(changes: dict[str, Any], part: str) -> None:
    reported = causes(**changes)
    assert len(reported) == 1
    assert part in reported[0]


def test_settings_that_allow_more() -> None:
    assert causes(cgroup=1, settings={"cluster": {"kubelet": {"failCgroupV1": False}}}) == []
    assert causes(kernel="5.10.0", settings={"cluster": {"proxy_mode": "iptables"}}) == []
    assert causes(pci=(gpu(P100),), settings={"driver": {"version": "580.178.04"}}) == []


def test_a_second_run_on_our_own_node_passes() -> None:
    own_state: dict[str, Any] = {
        "ports": {
            10250: "kubelet", 6443: "kube-apiserver", 2379: "etcd", 2380: "etcd",
            10257: "kube-controller", 10259: "kube-scheduler", 10256: "kube-proxy",
        },
        "kubeconfigs": {"/etc/kubernetes/kubelet.conf": "https://10.0.0.5:6443"},
        "units": {"containerd": Unit("active", "enabled"), "kubelet": Unit("active", "enabled")},
        "packages": {"containerd.io": "2.3.7-1"},
        "driver_loaded": LOCKED,
        "routes": (("10.244.0.0/24", "cni0"), ("10.244.1.0/24", "flannel.1")),
        "cluster_ca": "c1",
        "headers": "installed",
    }  # fmt: skip
    assert causes(LEADER, **own_state) == []
    unknown = dict.fromkeys(own_state["ports"], "?")
    assert causes(LEADER, **{**own_state, "ports": unknown}) == []


def test_secure_boot_with_a_driver_that_loads_is_fine() -> None:
    own_state: dict[str, Any] = {
        "driver_loaded": LOCKED,
        "packages": {"nvidia-open": f"{LOCKED}-1"},
    }
    assert causes(secure_boot=SecureBootState(enforced=True), **own_state) == []


def test_a_driver_that_is_there_already() -> None:
    settings = {"driver": {"enabled": False}}
    assert causes(settings=settings, driver_loaded="580.95.05") == []
    assert "no NVIDIA driver is loaded" in causes(settings=settings)[0]


def test_reboot_never_with_another_driver_loaded() -> None:
    reported = causes(settings={"driver": {"reboot": "never"}}, driver_loaded="595.71.05")
    assert reported == [
        f"driver 595.71.05 is loaded, {LOCKED} is requested, and driver.reboot is never"
    ]


def test_modules_that_the_gpus_cannot_use() -> None:
    proprietary = {"driver": {"modules": "proprietary"}}
    assert "needs the open kernel modules" in causes(settings=proprietary, pci=(gpu(GB200),))[0]
    assert causes(settings=proprietary, pci=(gpu(T4),)) == []


def test_no_gpus_need_no_driver() -> None:
    node = replace(WORKER, gpus=0)
    assert causes(node, pci=(), headers="missing", secure_boot=SecureBootState(enforced=True)) == []


def _pair(**worker: Any) -> list[tuple[str, str]]:
    parsed = parse_settings({})
    worker_state = replace(CLEAN, machine_id="m2", boot_id="b2", addresses=("10.0.0.6",))
    nodes = [LEADER, replace(WORKER, address="10.0.0.6")]
    states = {"cp1": replace(CLEAN, cluster_ca="ours"), "gpu1": replace(worker_state, **worker)}
    return [(p.host, p.cause) for p in evaluate(nodes, states, parsed, versions.lock(parsed))]


def test_clones_and_twins() -> None:
    assert _pair() == []
    assert _pair(machine_id="m1") == [("", "cp1, gpu1 have the same machine id")]
    assert ("", "cp1, gpu1 have the same boot id") in _pair(boot_id="b1")


def test_a_node_of_another_cluster() -> None:
    assert _pair(cluster_ca="ours") == []
    assert _pair(cluster_ca="theirs") == [
        ("gpu1", "it belongs to another Kubernetes cluster already")
    ]


def test_a_host_without_root_has_no_other_problem() -> None:
    unread: dict[str, Any] = {
        "ports": {6443: "?"},
        "pci": (),
        "kernel_features": frozenset(),
    }
    assert causes(uid=1000, **unread) == ["commands run as uid 1000, not as root"]


def test_a_leader_that_is_in_no_cluster_while_others_are() -> None:
    states = {
        "cp1": replace(CLEAN, machine_id="a", boot_id="a", cluster_ca="", addresses=("10.0.0.1",)),
        "gpu1": replace(CLEAN, machine_id="b", boot_id="b", cluster_ca="old"),
    }
    nodes = [replace(LEADER, address="10.0.0.1"), WORKER]
    parsed = parse_settings({})
    (problem,) = evaluate(nodes, states, parsed, versions.lock(parsed))
    assert problem.host == "cp1"
    assert "is in no cluster; in one are gpu1" in problem.cause


def test_hosts_that_were_not_read_are_left_to_their_own_problem() -> None:
    parsed = parse_settings({})
    assert evaluate([LEADER], {}, parsed, versions.lock(parsed)) == []


def test_a_site_may_ask_more_of_its_hosts() -> None:
    (reported_cause,) = causes(settings={"preflight": {"min_disk_mib": 999999999}})
    assert "has 50000 MiB free for /var/lib/containerd" in reported_cause
