"""Networks of others that the cluster's own must not overlap."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.node import fact as node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.node_state import parse
from gpuboot.preflight import network_problems
from gpuboot.preflight.network_problems import overlaps
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN

SIX = {"pod_cidr": "fd00:10:244::/56", "service_cidr": "fd00:10:96::/112"}
MEMBER = {"/etc/kubernetes/kubelet.conf": "https://10.0.0.1:6443"}


def causes(cluster: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    settings = parse_settings({"cluster": cluster or {}})
    return [cause for cause, _ in overlaps(replace(CLEAN, **changes), settings)]


@pytest.mark.parametrize(
    ("route", "device"),
    [
        ("10.244.0.0/16", "docker0"),
        ("10.244.5.0/24", "cni-podman0"),
        ("10.244.0.0/24", "podman0"),
        ("10.244.0.0/24", "lxdbr0"),
        ("10.244.0.0/24", "virbr0"),
        ("10.244.0.0/24", "br-0a1b2c3d4e5f"),
        ("10.244.0.0/24", "lowpan0"),
    ],
)
def test_bridges_of_others_are_not_our_own(route: str, device: str) -> None:
    assert causes(routes=((route, device),)) == [
        f"cluster.pod_cidr 10.244.0.0/16 overlaps its network {route} (device {device})"
    ]


def test_docker_s_usual_network_is_no_reason() -> None:
    assert causes(routes=(("172.17.0.0/16", "docker0"), ("10.88.0.0/16", "podman0"))) == []
    assert causes({"pod_cidr": "172.17.0.0/16"}, routes=(("172.17.0.0/16", "docker0"),)) != []


def test_networks_of_ipv6() -> None:
    assert causes(SIX, routes=(("fd00:10:244::/64", "eth1"),)) == [
        "cluster.pod_cidr fd00:10:244::/56 overlaps its network fd00:10:244::/64 (device eth1)"
    ]
    assert causes(SIX, routes=(("fd00::/8", "wg0"),)) != []
    assert causes(SIX, routes=(("2001:db8::/64", "eth0"), ("10.0.0.0/8", "eth0"))) == []
    cluster_routes = (("fd00:10:244::/64", "cni0"), ("fd00:10:244:1::/64", "flannel-v6.1"))
    assert causes(SIX, routes=cluster_routes, kubeconfigs=MEMBER) == []


def test_networks_that_are_configured_and_not_up() -> None:
    reported = causes({"pod_cidr": "10.88.0.0/16"}, other_networks=(("10.88.0.0/16", "podman"),))
    assert reported == ["cluster.pod_cidr 10.88.0.0/16 overlaps its network 10.88.0.0/16 (podman)"]
    libvirt = (("192.168.122.1/255.255.255.0", "libvirt"),)
    assert causes({"pod_cidr": "192.168.0.0/16"}, other_networks=libvirt) != []
    assert causes(other_networks=libvirt) == []
    assert causes({"pod_cidr": "192.168.0.0/16"}, other_networks=libvirt, kubeconfigs=MEMBER) == []


def test_pods_of_other_nodes_with_host_gw() -> None:
    routes = (("10.244.0.0/24", "cni0"), ("10.244.1.0/24", "eth0"))
    assert causes({"flannel_backend": "host-gw"}, routes=routes, kubeconfigs=MEMBER) == []
    assert causes({"flannel_backend": "host-gw"}, routes=routes) != []
    assert causes(routes=routes, kubeconfigs=MEMBER) != []
    wide = (("10.244.0.0/20", "eth0"),)
    assert causes({"flannel_backend": "host-gw"}, routes=wide, kubeconfigs=MEMBER) != []


IP = """\
#!/bin/sh
case "$*" in
'-o -4 route show') cat <<X
default via 10.0.0.1 dev eth0 proto dhcp metric 100
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5 metric 100
172.17.0.0/16 dev docker0 proto kernel scope link src 172.17.0.1 linkdown
X
;;
'-o -6 route show') cat <<X
fd00:10:244::/64 dev eth1 proto ra metric 1024 expires 1798sec pref medium
fe80::/64 dev eth0 proto kernel metric 256 pref medium
default via fe80::1 dev eth0 proto ra metric 1024 expires 1798sec pref medium
X
;;
esac
"""


def test_routes_of_both_families_are_read(tmp_path: Path) -> None:
    program = tmp_path / "ip"
    program.write_text(IP)
    program.chmod(0o755)
    script = Path(node.__file__).with_name("networks.sh")
    result = subprocess.run(
        ["sh", "-uc", f". {script}\nnetworks"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    lines = [line for line in result.stdout.splitlines() if line.startswith("route")]
    assert parse([*(x for x in ANSWER if not x.startswith("route")), *lines]).routes == (
        ("10.0.0.0/24", "eth0"),
        ("172.17.0.0/16", "docker0"),
        ("fd00:10:244::/64", "eth1"),
    )


@pytest.mark.parametrize(
    ("mode", "minor", "count"), [("ipvs", "1.37", 1), ("ipvs", "1.36", 0), ("nftables", "1.37", 0)]
)
def test_a_proxy_mode_that_upstream_drops_is_told(mode: str, minor: str, count: int) -> None:
    site = parse_settings({"cluster": {"proxy_mode": mode}})
    assert len(network_problems.warnings(site, minor)) == count
