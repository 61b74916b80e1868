"""NetworkPolicies, judged as a network plugin does: what may reach which pod on which port."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpuboot.cluster.manifests import as_owned
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.monitoring import objects as monitoring
from gpuboot.monitoring.network_policies import (
    ALERTMANAGER,
    GRAFANA,
    PROMETHEUS,
    enforcement,
    policies,
    ranges,
    reached,
    warnings,
)

NODES = (
    Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, True),
    Node("gpu1", "gpu1", "10.0.0.2", "worker", 8, False),
)
RANGES = {"10.0.0.1": ("10.244.0.0/24",), "10.0.0.2": ("10.244.1.0/24",)}


@dataclass(frozen=True)
class Peer:
    """Somebody: a pod (namespace and labels), or an address outside."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    address: str = ""


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    match_labels: Mapping[str, str] = selector.get("matchLabels", {})
    return all(labels.get(key) == value for key, value in match_labels.items())


def is_peer(rule: Mapping[str, Any], source: Peer, home: str) -> bool:
    if "ipBlock" in rule:
        block = ipaddress.ip_network(rule["ipBlock"]["cidr"])
        return bool(source.address) and ipaddress.ip_address(source.address) in block
    if source.address:
        return False
    namespace_labels = {"kubernetes.io/metadata.name": source.namespace, **source.namespace_labels}
    right_place = (
        matches(rule["namespaceSelector"], namespace_labels)
        if "namespaceSelector" in rule
        else source.namespace == home
    )
    return right_place and matches(rule.get("podSelector", {}), source.labels)


def reaches(source: Peer, target: Peer, port: int, protocol: str = "TCP", **settings: Any) -> bool:
    """Whether a connection is let in: by no policy at all, or by a rule of one that selects it."""
    selected = [
        policy
        for policy in reached(policies(parse_settings(_with(settings)), NODES), RANGES)
        if policy["metadata"]["namespace"] == target.namespace
        and matches(policy["spec"]["podSelector"], target.labels)
    ]
    return not selected or any(
        {"protocol": protocol, "port": port} in rule["ports"]
        and ("from" not in rule or any(is_peer(p, source, target.namespace) for p in rule["from"]))
        for policy in selected
        for rule in policy["spec"]["ingress"]
    )


def _with(settings: Mapping[str, Any]) -> dict[str, Any]:
    monitoring_data = {"network_policies": True, **settings.get("monitoring", {})}
    return {**settings, "monitoring": monitoring_data}


prometheus = Peer("monitoring", {**PROMETHEUS, "operator.prometheus.io/name": "kps"})
alertmanager = Peer("monitoring", ALERTMANAGER)
grafana = Peer("monitoring", GRAFANA)
operator = Peer("monitoring", {"app": "kube-prometheus-stack-operator"})
exporter = Peer("gpu-operator", {"app": "nvidia-dcgm-exporter"})
tenant = Peer("team-a", {"app": "web"})
# a tenant's pod that calls itself Prometheus
impostor = Peer("team-a", PROMETHEUS)
keda = Peer("keda", {"app": "keda"}, {"gpuboot.io/monitoring-client": "true"})
api_server = Peer(address="10.0.0.1")
# the same, as pods see it (flannel, pkg/backend/vxlan/vxlan.go: the device's address is the source
# of what a host sends to pods): of other nodes, and of its own
by_tunnel = Peer(address="10.244.0.0")
by_bridge = Peer(address="10.244.0.1")
other_host = Peer(address="10.0.0.2")


@pytest.mark.parametrize(
    ("source", "target", "port"),
    [
        (prometheus, exporter, 9400),
        (api_server, exporter, 9400),
        (grafana, prometheus, 9090),
        (prometheus, prometheus, 9090),
        (prometheus, prometheus, 8080),
        (api_server, prometheus, 9090),
        *[
            (host, target, port)
            for host in (by_tunnel, by_bridge)
            for target, port in (
                (exporter, 9400),
                (prometheus, 9090),
                (alertmanager, 9093),
                (grafana, 3000),
            )
        ],
        (keda, prometheus, 9090),
        (prometheus, alertmanager, 9093),
        (alertmanager, alertmanager, 9094),
        (api_server, alertmanager, 9093),
        (prometheus, alertmanager, 8080),
        (grafana, alertmanager, 9093),
        (keda, grafana, 3000),
        (prometheus, grafana, 3000),
        (tenant, operator, 10250),  # the API server's webhook, wherever it comes from
    ],
)
def test_who_must_talk_may(source: Peer, target: Peer, port: int) -> None:
    assert reaches(source, target, port)


@pytest.mark.parametrize(
    ("source", "target", "port"),
    [
        (tenant, exporter, 9400),
        (impostor, exporter, 9400),
        (grafana, exporter, 9400),
        (tenant, prometheus, 9090),
        (impostor, prometheus, 9090),
        (keda, prometheus, 8080),
        (tenant, alertmanager, 9093),
        (tenant, alertmanager, 9094),
        (other_host, prometheus, 9090),
        (Peer(address="10.244.1.0"), prometheus, 9090),  # another node's tunnel
        (Peer(address="10.244.0.2"), prometheus, 9090),  # a pod beside the API server
        (by_tunnel, prometheus, 8080),
        (tenant, grafana, 3000),
    ],
)
def test_nobody_else_may(source: Peer, target: Peer, port: int) -> None:
    assert not reaches(source, target, port)


def test_the_mesh_of_alertmanagers_is_udp_too() -> None:
    assert reaches(alertmanager, alertmanager, 9094, "UDP")
    assert not reaches(tenant, alertmanager, 9094, "UDP")


def test_a_node_port_is_for_everybody() -> None:
    outside = Peer(address="198.51.100.7")
    open_ = {"node_ports": {"prometheus": 30090, "grafana": 32322}}
    assert not reaches(outside, prometheus, 9090)
    assert reaches(outside, prometheus, 9090, monitoring=open_)
    assert reaches(outside, grafana, 3000, monitoring=open_)
    assert not reaches(outside, prometheus, 8080, monitoring=open_)
    assert not reaches(outside, alertmanager, 9093, monitoring=open_)


def test_the_stand_alone_exporter_is_guarded_where_it_runs() -> None:
    standalone_exporter = Peer("dcgm-exporter", {"app.kubernetes.io/name": "dcgm-exporter"})
    kind = {"kind": "chart"}
    assert reaches(prometheus, standalone_exporter, 9400, exporter=kind)
    assert not reaches(tenant, standalone_exporter, 9400, exporter=kind)


def test_it_is_an_option_and_goes_away_again() -> None:
    off, on = parse_settings({}), parse_settings({"monitoring": {"network_policies": True}})
    assert policies(off, NODES) == []
    assert monitoring.namespaces(off) == monitoring.namespaces(on)
    namespaces = {item["metadata"]["namespace"] for item in monitoring.objects(on, NODES)}
    assert namespaces <= set(monitoring.namespaces(on))
    assert all(as_owned(item) for item in policies(on, NODES))
    assert warnings(off) == []
    assert "flannel" in warnings(on)[0]


def test_who_enforces_them() -> None:
    assert enforcement(["kube-flannel-ds", "calico-node"]) == "enforced by DaemonSet calico-node"
    assert enforcement(["kube-flannel-ds"]).startswith("not enforced: flannel ignores them")


def test_addresses_of_both_families() -> None:
    nodes = [Node("cp1", "cp1", "fd00::1", "control_plane", 0, True)]
    [policy, *_] = policies(parse_settings({"monitoring": {"network_policies": True}}), nodes)
    assert {"ipBlock": {"cidr": "fd00::1/128"}} in policy["spec"]["ingress"][0]["from"]


def test_ranges_of_pods_are_the_nodes_own() -> None:
    node = {
        "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "Hostname", "address": "cp1"},
            ]
        },
    }
    assert ranges([node, {"spec": {}}]) == {"10.0.0.1": ("10.244.0.0/24",)}


def test_only_policies_are_completed() -> None:
    on = parse_settings({"monitoring": {"network_policies": True}})
    plain = monitoring.objects(on, NODES)
    completed = reached(plain, RANGES)
    changed = [a["kind"] for a, b in zip(plain, completed, strict=True) if a != b]
    assert changed == ["NetworkPolicy"] * 4
    assert reached(plain, {}) == plain
    assert (
        monitoring.expectation(on, NODES, RANGES).objects
        != monitoring.expectation(on, NODES).objects
    )
