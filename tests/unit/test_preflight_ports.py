"""Preflight of ports: who has them on which node, with which settings, and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.node_state import Unit
from gpuboot.hosts.remains import EtcdProcess, Remains
from gpuboot.preflight import docker_problems as docker
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_preflight import CLEAN, LEADER, WORKER

OWN_KUBECONFIGS = {"/etc/kubernetes/kubelet.conf": "https://10.0.0.5:6443"}
NODE_EXPORTER = "prometheus-node-exporter"


def problems(
    port: int,
    owner: str,
    unit: str = "-",
    node: Node = WORKER,
    settings: dict[str, Any] | None = None,
    **changes: Any,
) -> list[Problem]:
    parsed = parse_settings(settings or {})
    remains = changes.pop("remains", Remains())
    remains = replace(remains, port_units={str(port): unit})
    state = replace(CLEAN, ports={port: owner}, remains=remains, **changes)
    checks = docker.checks(parsed) if node.role == "docker" else None
    return evaluate([node], {node.host: state}, parsed, versions.lock(parsed), checks)


@pytest.mark.parametrize("node", [LEADER, WORKER])
@pytest.mark.parametrize(
    ("port", "use"),
    [
        (8081, "flannel"),
        (9100, "node-exporter"),
        (10248, "kubelet"),
        (10249, "kube-proxy"),
        (10250, "kubelet"),
        (10256, "kube-proxy"),
    ],
)
def test_ports_of_every_node(node: Node, port: int, use: str) -> None:
    (problem,) = problems(port, "java", "app.service", node)
    assert problem.cause == f"TCP port {port} is in use by java (app.service); {use} needs it"
    assert "`systemctl disable --now app.service`" in problem.remedy


@pytest.mark.parametrize("port", [6443, 2379, 2380, 2381, 10257, 10259])
def test_ports_of_a_control_plane(port: int) -> None:
    assert len(problems(port, "java", node=LEADER)) == 1
    assert problems(port, "java", node=WORKER) == []


def test_an_etcd_of_others_is_not_ours_by_its_name() -> None:
    remains = Remains(etcd_processes=(EtcdProcess("etcd.service", "/srv/etcd"),))
    (problem,) = problems(2379, "etcd", "etcd.service", LEADER, remains=remains)
    assert "in use by etcd (etcd.service, data in /srv/etcd); etcd needs it" in problem.cause


@pytest.mark.parametrize(
    "changes",
    [
        {"kubeconfigs": OWN_KUBECONFIGS},
        {"half_made": ("init",)},
        {"remains": Remains(is_gpuboot_node=True)},
    ],
)
def test_what_a_node_of_ours_holds(changes: dict[str, Any]) -> None:
    for port, owner, unit in (
        (2379, "etcd", "pod"),
        (9100, "node_exporter", "pod"),
        (9100, "a-name-of-a-pod", "pod"),
        (10250, "kubelet", "kubelet.service"),
        (10248, "kubelet", "-"),
        (8081, "?", "-"),
    ):
        assert problems(port, owner, unit, LEADER, **changes) == []


@pytest.mark.parametrize(
    ("port", "owner", "unit"),
    [
        (9100, "node_exporter", "prometheus-node-exporter.service"),
        (9100, "node_exporter", "docker:0123456789abcdef"),
        (2379, "etcd", "etcd.service"),
        (8081, "java", "-"),
    ],
)
def test_what_others_hold_on_a_node_of_ours(port: int, owner: str, unit: str) -> None:
    assert len(problems(port, owner, unit, LEADER, kubeconfigs=OWN_KUBECONFIGS)) == 1


def test_containers_of_docker() -> None:
    (problem,) = problems(9100, "node_exporter", "docker:0123456789abcdef")
    assert "(Docker container 0123456789ab)" in problem.cause
    assert "docker ps | grep 0123456789ab" in problem.remedy
    (problem,) = problems(9100, "docker-proxy", "docker.service")
    assert "docker ps --filter publish=9100" in problem.remedy
    assert "systemctl disable" not in problem.remedy


def test_settings_that_spare_a_port() -> None:
    (problem,) = problems(10249, "java")
    assert problem.remedy.endswith("or set monitoring.control_plane_targets = False")
    spared: dict[str, Any] = {"monitoring": {"control_plane_targets": False}}
    assert problems(10249, "java", settings=spared) == []
    (problem,) = problems(9100, "java")
    assert f'monitoring.values["{NODE_EXPORTER}"]["service"] = {{"port": …}}' in problem.remedy
    moved = {"monitoring": {"values": {NODE_EXPORTER: {"service": {"port": 9101}}}}}
    assert problems(9100, "java", settings=moved) == []
    assert len(problems(9101, "java", settings=moved)) == 1
    without = {"monitoring": {"values": {"nodeExporter": {"enabled": False}}}}
    for settings in (without, {"monitoring": {"enabled": False}}):
        assert problems(9100, "java", settings=settings) == []


def test_the_exporters_port_where_it_is_on_the_hosts_network() -> None:
    assert problems(9400, "dcgm-exporter", "dcgm-exporter.service") == []
    settings = {"dcgm": "host"}
    (problem,) = problems(9400, "dcgm-exporter", "dcgm-exporter.service", settings=settings)
    assert "dcgm-exporter.service" in problem.cause
    node = replace(WORKER, gpus=0)
    assert problems(9400, "java", node=node, pci=(), settings=settings) == []


@pytest.mark.parametrize("name", ["prometheus", "alertmanager", "grafana"])
def test_node_ports(name: str) -> None:
    settings = {"monitoring": {"node_ports": {name: 30090}}}
    (problem,) = problems(30090, "nginx", "nginx.service", settings=settings)
    assert f"monitoring.node_ports.{name} needs it" in problem.cause
    assert f"or set another monitoring.node_ports.{name}" in problem.remedy
    assert problems(30091, "nginx", settings=settings) == []


def test_a_docker_host_with_a_node_exporter_of_its_system() -> None:
    node = replace(WORKER, role="docker")
    running = {"docker": Unit("active", "enabled")}
    unit = "prometheus-node-exporter.service"
    (problem,) = problems(9100, "node_exporter", unit, node, units=running)
    assert unit in problem.cause
    assert "another port in settings.standalone" in problem.remedy
    assert problems(9100, "node_exporter", "docker:0123456789abcdef", node, units=running) == []


@pytest.mark.parametrize(
    ("port", "owner", "settings", "part"),
    [
        ("51820", "?", {"flannel_backend": "wireguard"}, "in use by a WireGuard device"),
        ("51820", "wireguard-go", {"flannel_backend": "wireguard"}, "in use by wireguard-go"),
        ("8472", "nebula", {}, "in use by nebula; flannel (vxlan)"),
        ("8472", "?", {}, ""),
        ("51820", "?", {}, ""),
        ("51821", "?", {"flannel_backend": "wireguard"}, ""),
        ("8472", "nebula", {"flannel_backend": "host-gw"}, ""),
    ],
)
def test_the_port_of_flannels_backend(
    port: str, owner: str, settings: dict[str, Any], part: str
) -> None:
    parsed = parse_settings({"cluster": settings})
    for recorded in (False, True):
        remains = Remains(udp_ports={port: owner}, is_gpuboot_node=recorded)
        state = replace(CLEAN, remains=remains)
        causes = [
            item.cause
            for item in evaluate([WORKER], {"gpu1": state}, parsed, versions.lock(parsed))
        ]
        assert len(causes) == int(bool(part) and not recorded)
        assert all(part in cause for cause in causes)
