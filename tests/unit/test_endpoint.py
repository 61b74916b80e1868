"""How nodes reach the API, and what keeps control planes from joining."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpuboot.cluster import endpoint, etcd_members, flannel, kubeadm
from gpuboot.cluster.cluster_answers import DNS_PODS, parse_dns_nodes
from gpuboot.cluster.etcd_members import Member
from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.fact_output import FactOutputError
from gpuboot.hosts.node_state import NodeState
from tests.cluster_answers import item_list, make_object, packed

CP1, CP2, CP3 = (
    Node(f"cp{i}", f"cp{i}", f"10.0.0.{i}", "control_plane", gpus=0, leader=i == 1)
    for i in (1, 2, 3)
)
GPU1 = Node("gpu1", "gpu1", "10.0.0.21", "worker", gpus=8, leader=False)
ONE_CONTROL_PLANE, THREE = (CP1, GPU1), (CP1, CP2, CP3, GPU1)
PLAIN = parse_settings({})
NEW = PLAIN.model_copy(update={"cluster": endpoint.decided(PLAIN.cluster, "")})
OLD = PLAIN.model_copy(update={"cluster": endpoint.decided(PLAIN.cluster, "https://10.0.0.1:6443")})
SITE_ENDPOINT = parse_settings({"cluster": {"endpoint": "lb.example.com:6443"}})
_ADDRESS = parse_settings({"cluster": {"virtual_ip": "10.0.0.10"}})
VIRTUAL = _ADDRESS.model_copy(update={"cluster": endpoint.decided(_ADDRESS.cluster, "")})
LOCK = versions.lock(PLAIN)


@pytest.mark.parametrize(
    ("settings", "reached"), [(NEW, "gpuboot-api:6443"), (OLD, "10.0.0.1:6443")]
)
def test_a_cluster_keeps_what_it_was_made_with(settings: Any, reached: str) -> None:
    assert kubeadm.endpoint(settings.cluster, ONE_CONTROL_PLANE) == reached
    text = kubeadm.init_config(settings, LOCK, ONE_CONTROL_PLANE)
    assert ('controlPlaneEndpoint: "gpuboot-api:6443"' in text) is (settings is NEW)
    assert ("gpuboot-api" in text) is (settings is NEW)
    assert "gpuboot-api" in endpoint.decided(PLAIN.cluster, "https://gpuboot-api:6443").endpoint  # type: ignore[operator]


def test_a_site_s_own_endpoint_stays() -> None:
    assert endpoint.decided(SITE_ENDPOINT.cluster, "https://10.0.0.1:6443") == SITE_ENDPOINT.cluster
    assert not endpoint.is_ours(SITE_ENDPOINT.cluster)
    assert not kubeadm.balanced(SITE_ENDPOINT.cluster, THREE)


def test_who_resolves_the_name_to_what() -> None:
    for cluster, three in ((NEW.cluster, "127.0.0.1"), (VIRTUAL.cluster, "10.0.0.10")):
        single = "10.0.0.1" if cluster is NEW.cluster else three
        assert endpoint.address(cluster, GPU1, ONE_CONTROL_PLANE, member=False) == single
        assert endpoint.address(cluster, GPU1, THREE, member=False) == three
        assert endpoint.address(cluster, CP1, THREE, member=False) == "10.0.0.1"  # it makes it
        assert endpoint.address(cluster, CP2, THREE, member=False) == "10.0.0.1"  # it joins
        assert endpoint.address(cluster, CP2, THREE, member=True) == "10.0.0.2"


def test_growth_renews_what_has_read_the_name_before() -> None:
    single, three = (
        kubeadm.configuration(NEW, LOCK, nodes) for nodes in (ONE_CONTROL_PLANE, THREE)
    )
    assert single.digest != three.digest
    assert (single.kubelet, single.immutable) == (three.kubelet, three.immutable)
    api = "gpuboot-api:6443"
    ways = [kubeadm.way_to_api(variant.cluster, THREE) for variant in (SITE_ENDPOINT, NEW, VIRTUAL)]
    assert ways == ["", "balanced", "10.0.0.10"]
    assert len({flannel.manifest(NEW, LOCK, api, way) for way in ways}) == 3
    assert "annotations: {gpuboot.dev/api: balanced}" in flannel.manifest(NEW, LOCK, api, ways[1])
    assert (
        len({kubeadm.configuration(variant, LOCK, THREE).digest for variant in (NEW, VIRTUAL)}) == 2
    )
    digests = (
        kubeadm.configuration(SITE_ENDPOINT, LOCK, nodes).digest
        for nodes in (ONE_CONTROL_PLANE, THREE)
    )
    assert len(set(digests)) == 1


def test_the_load_balancer_checks_every_api_server() -> None:
    text = endpoint.load_balancer(THREE)
    assert "bind 127.0.0.1:6443" in text
    for node in (CP1, CP2, CP3):
        assert f"server {node.name} {node.address}:6443" in text
    assert "gpu1" not in text
    assert " inter 2s " in text
    many = [*THREE, *(replace(GPU1, host=f"g{i}") for i in range(999))]
    assert " inter 10s " in endpoint.load_balancer(many)
    six = [replace(CP1, address="2001:db8::1"), CP2]
    assert "server cp1 [2001:db8::1]:6443" in endpoint.load_balancer(six)


def test_a_cluster_of_one_address_cannot_grow() -> None:
    [problem] = endpoint.growth_refused(OLD.cluster, THREE)
    assert "made with an address instead of a name" in problem.cause
    assert "take the others out of group control_plane" in problem.remedy
    for settings, nodes in (
        (OLD, ONE_CONTROL_PLANE),
        (NEW, THREE),
        (SITE_ENDPOINT, THREE),
        (VIRTUAL, THREE),
    ):
        assert endpoint.growth_refused(settings.cluster, nodes) == []
    old = endpoint.decided(_ADDRESS.cluster, "https://10.0.0.1:6443")
    [problem] = endpoint.growth_refused(old, ONE_CONTROL_PLANE)
    assert "would not use cluster.virtual_ip" in problem.cause
    assert len(endpoint.growth_refused(old, THREE)) == 2


@pytest.mark.parametrize(
    ("ports", "owner", "expected"),
    [
        ({6443: "haproxy"}, "ours", ""),
        ({6443: "?"}, "", ""),
        ({}, "", ""),
        ({6443: "nginx"}, "", "TCP port 6443 is in use by nginx"),
        ({}, "foreign", "haproxy there has a configuration of its own"),
    ],
)
def test_what_is_in_the_load_balancer_s_place(
    ports: dict[int, str], owner: str, expected: str
) -> None:
    state = cast(NodeState, SimpleNamespace(ports=ports, load_balancer=owner))
    states = dict.fromkeys(("cp1", "gpu1"), state)
    problems = endpoint.problems(THREE, states, NEW)
    assert [problem.host for problem in problems] == (["gpu1"] if expected else [])
    assert all(expected in problem.cause for problem in problems)
    assert (
        endpoint.problems(ONE_CONTROL_PLANE, states, NEW)
        == endpoint.problems(THREE, states, SITE_ENDPOINT)
        == []
    )


def members(*healthy: bool) -> list[Member]:
    return [
        Member(f"{i}", f"cp{i}", (f"https://10.0.0.{i}:2380",), well)
        for i, well in enumerate(healthy, start=1)
    ]


def test_etcdctl_s_answers() -> None:
    member_list = {
        "members": [
            {"ID": 10276657743932975437, "name": "cp1", "peerURLs": ["https://10.0.0.1:2380"],
             "clientURLs": ["https://10.0.0.1:2379"]},
            {"ID": 255, "peerURLs": ["https://[2001:db8::2]:2380"]},
        ]
    }  # fmt: skip
    health = [{"endpoint": "https://10.0.0.1:2379", "health": True, "took": "9ms"}]
    first, second = etcd_members.parse(json.dumps(member_list), json.dumps(health))
    assert (first.id, first.name, first.healthy) == ("8e9e05c52164694d", "cp1", True)
    assert (second.id, second.name, second.healthy) == ("ff", "", False)
    assert second.is_of("cp2", "2001:db8::2")
    assert not second.is_of("cp2", "")
    with pytest.raises(FactOutputError):
        etcd_members.parse("Error: context deadline exceeded", "")


def test_a_member_goes_only_where_the_rest_is_a_majority() -> None:
    two, three = members(True, True, False), members(True, True, True)
    assert etcd_members.too_few(two, two[2:]) == ""
    assert etcd_members.too_few(three, three[2:]) == ""
    assert "of the 2 members that would be left, 1 answer (cp3" in etcd_members.too_few(
        two, two[1:2]
    )
    assert etcd_members.too_few(members(True, True), members(True, True)[1:]) == ""


def test_a_control_plane_joins_beside_healthy_members_alone() -> None:
    three = members(True, True, False)
    assert etcd_members.join_refused(three, three[2:]) is None  # its own, of an earlier life
    assert etcd_members.join_refused(members(True), []) is None
    refusal = etcd_members.join_refused(three, [])
    assert refusal is not None
    assert "etcd's member of cp3 does not answer" in refusal[0]
    assert "gpuboot_remove=cp3" in refusal[1]
    quorum_refusal = etcd_members.join_refused(members(True, False, False), [])
    assert quorum_refusal is not None
    assert "etcd would lose its majority" in quorum_refusal[0]


def test_the_nodes_of_coredns() -> None:
    pods = [
        make_object(f"coredns-{i}", spec={"nodeName": node})
        for i, node in enumerate(("cp1", "cp2"))
    ]
    pods[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert parse_dns_nodes(packed({DNS_PODS: item_list(*pods)})) == ("cp1",)
    assert parse_dns_nodes(["error\tthere is no cluster yet", "end\tok"]) == ()
