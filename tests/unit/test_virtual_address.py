"""The virtual address of the API servers: keepalived's configuration, and what keeps it from it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpuboot.cluster import kubeadm
from gpuboot.cluster import virtual_address as virtual
from gpuboot.cluster.endpoint import decided
from gpuboot.cluster.virtual_address import Neighbour
from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Cluster, Settings, parse_settings
from gpuboot.hosts.boot import BootState
from gpuboot.hosts.node_state import NodeState

CP1, CP2, CP3 = (
    Node(f"cp{i}", f"node{i}", f"10.0.0.{i}", "control_plane", gpus=0, leader=i == 1)
    for i in (1, 2, 3)
)
GPU1 = Node("gpu1", "gpu1", "10.0.0.21", "worker", gpus=8, leader=False)
NODES = (CP1, CP2, CP3, GPU1)
PLAIN = parse_settings({}).cluster


def cluster(virtual_ip: str = "10.0.0.10", **fields: Any) -> Cluster:
    settings = parse_settings({"cluster": {"virtual_ip": virtual_ip, **fields}})
    return decided(settings.cluster, "")


def full_settings(part: Cluster) -> Settings:
    """All settings, with those of the cluster as a run has them."""
    return parse_settings({}).model_copy(update={"cluster": part})


def state(*interfaces: str, **fields: Any) -> NodeState:
    """A machine with `DEVICE ADDRESS/PREFIX` each."""
    pairs = tuple((item.split()[0], item.split()[1]) for item in interfaces)
    addresses = tuple(address.partition("/")[0] for _, address in pairs)
    defaults = {"keepalived": "", "virtual_address": "", "load_balancer": "", "kubeconfigs": {}}
    attributes = {**defaults, "interfaces": pairs, "addresses": addresses, **fields}
    return cast(NodeState, SimpleNamespace(boot=BootState(), **attributes))


def site(**fields: Any) -> dict[str, NodeState]:
    """All four machines, in one network. + fields: of each"""
    return {node.host: state(f"eth0 {node.address}/24", **fields) for node in NODES}


def virtual_problems(states: Mapping[str, NodeState], settings: Cluster | None = None) -> list[str]:
    problems = virtual.problems(NODES, states, settings or cluster())
    assert all(item.remedy for item in problems)
    return [f"{item.host}: {item.cause}" for item in problems]


def test_keepalived_s_configuration() -> None:
    text = virtual.keepalived(cluster(), CP2, NODES, site()["cp2"])
    for line in (
        "router_id node2", "interface eth0", "priority 100", "weight -50",
        "unicast_src_ip 10.0.0.2", "10.0.0.10 dev eth0", "https://127.0.0.1:6443/readyz",
    ):  # fmt: skip
        assert line in text
    peers = text.split("unicast_peer {")[1].split("}")[0].split()
    assert peers == ["10.0.0.1", "10.0.0.3"]
    assert "auth_pass" not in text
    assert "nopreempt\n" not in text
    assert f"virtual_router_id {virtual.router_id(cluster())}" in text
    assert "virtual_router_id 77" in virtual.keepalived(
        cluster(virtual_router_id=77), CP1, NODES, site()["cp1"]
    )


def test_one_control_plane_alone_has_nobody_to_tell() -> None:
    text = virtual.keepalived(cluster(), CP1, (CP1, GPU1), site()["cp1"])
    assert "unicast_peer" not in text
    assert "unicast_src_ip" not in text


def test_the_router_s_number_follows_from_the_address() -> None:
    numbers = {virtual.router_id(cluster(f"10.0.0.{last}")) for last in range(1, 255)}
    assert len(numbers) == 254
    assert all(1 <= number <= 255 for number in numbers)
    six = cluster("fd00::10", pod_cidr="fd01::/56", service_cidr="fd02::/112")
    assert 1 <= virtual.router_id(six) <= 255


@pytest.mark.parametrize(
    ("interfaces", "fields", "device"),
    [
        (["eth0 10.0.0.1/24"], {}, "eth0"),
        (["eth0 192.0.2.1/24", "eth1 10.0.0.1/24"], {}, "eth1"),
        # the address itself, which this machine holds, tells nothing
        (["eth0 10.0.0.1/24", "eth0 10.0.0.10/32"], {}, "eth0"),
        # another network than that of the nodes: clients are there
        (["eth0 192.0.2.1/24", "eth1 10.0.0.1/24"], {"virtual_ip": "192.0.2.10"}, "eth0"),
        (["eth0 10.0.0.1/24", "eth1 10.0.0.2/24"], {}, "eth0"),
        (["eth2 10.0.0.1/32"], {"virtual_ip_interface": "eth2"}, "eth2"),
        (["eth0 172.16.0.1/24"], {}, ""),
        (["eth0 10.0.0.1/32"], {}, ""),
        (["eth1 10.0.0.8/24", "eth2 10.0.0.9/24", "eth0 172.16.0.1/24"], {}, ""),
    ],
)
def test_the_device_is_the_one_whose_network_it_is_in(
    interfaces: list[str], fields: dict[str, Any], device: str
) -> None:
    assert virtual.device(cluster(**fields), CP1, state(*interfaces)) == device


def test_vrrp_goes_by_the_nodes_own_network() -> None:
    machine = state("eth0 192.0.2.1/24", "eth1 10.0.0.1/24")
    text = virtual.keepalived(cluster("192.0.2.10"), CP1, NODES, machine)
    assert "interface eth1" in text
    assert "192.0.2.10 dev eth0" in text


def test_a_sound_site_has_no_problem() -> None:
    assert virtual_problems(site()) == []
    own_site = site(keepalived="ours", virtual_address="10.0.0.10")
    own_site["cp2"] = state("eth0 10.0.0.2/24", "eth0 10.0.0.10/32", keepalived="ours",
                        virtual_address="10.0.0.10")  # fmt: skip
    assert virtual_problems(own_site) == []
    assert virtual_problems(site(), PLAIN) == []
    # one that cannot be reached is not asked
    assert (
        virtual_problems(
            {name: node_state for name, node_state in own_site.items() if name != "gpu1"}
        )
        == []
    )


@pytest.mark.parametrize(
    ("host", "machine", "settings", "expected"),
    [
        ("cp2", state("eth0 10.0.0.2/24"), cluster("10.0.0.2"), "is its own address"),
        ("gpu1", state("eth0 10.0.0.21/24"), cluster("10.0.0.21"), "is its own address"),
        (
            "gpu1",
            state("eth0 10.0.0.21/24", "eth0 10.0.0.10/32"),
            cluster(),
            "it has the address 10.0.0.10 (cluster.virtual_ip) already, not by gpuboot",
        ),
        (
            "cp3",
            state("eth0 10.0.0.3/24", keepalived="foreign"),
            cluster(),
            "keepalived there has a configuration of its own",
        ),
        (
            "cp1",
            state("eth0 10.0.0.1/24", "eth0 fd00::1/64"),
            cluster("10.0.9.10"),
            "is in none of its networks (it has 10.0.0.1/24 (eth0), fd00::1/64 (eth0))",
        ),
        (
            "cp1",
            state("eth0 172.16.0.1/24", "eth1 10.0.0.8/24", "eth2 10.0.0.9/24"),
            cluster(),
            "is in networks of eth1, eth2",
        ),
        ("cp1", state("eno1 10.0.0.1/24"), cluster(virtual_ip_interface="eno1"), ""),
    ],
)
def test_why_the_address_cannot_be_had(
    host: str, machine: NodeState, settings: Cluster, expected: str
) -> None:
    states = {**site(), host: machine}
    matching = [line for line in virtual_problems(states, settings) if line.startswith(f"{host}: ")]
    assert len(matching) == bool(expected)
    assert all(expected in line for line in matching)


def test_a_device_that_is_not_there_and_another_ip_version() -> None:
    reported = virtual_problems(site(), cluster(virtual_ip_interface="eth7"))
    assert [line.partition(":")[0] for line in reported] == ["cp1", "cp2", "cp3"]
    assert "no network device eth7" in reported[0]
    six = cluster("fd00::10")
    assert "is of another IP version than its 10.0.0.1" in virtual_problems(site(), six)[0]


def test_no_worker_is_left_with_an_address_that_goes() -> None:
    own_site = site(keepalived="ours", virtual_address="10.0.0.10")
    without_gpu1 = {name: node_state for name, node_state in own_site.items() if name != "gpu1"}
    for settings in (PLAIN, cluster("10.0.0.11")):
        assert virtual_problems(own_site, settings) == []
        [line] = virtual_problems(without_gpu1, settings)
        assert "the virtual address 10.0.0.10 is to go, and gpu1, now out of reach" in line


def test_it_is_asked_who_has_the_address_before_it_is_ours() -> None:
    def asker(states: Mapping[str, NodeState], settings: Cluster) -> str:
        asker_node = virtual.asker(NODES, states, settings)
        return asker_node.host if asker_node else ""

    assert asker(site(), cluster()) == "cp1"
    assert asker(site(), PLAIN) == ""
    own_site = site(keepalived="ours", virtual_address="10.0.0.10")
    assert asker(own_site, cluster()) == ""
    assert asker(own_site, cluster("10.0.0.11")) == "cp1"
    # it may be the one that has it
    assert (
        asker({name: node_state for name, node_state in site().items() if name != "cp3"}, cluster())
        == ""
    )


def test_who_has_the_address_is_named() -> None:
    assert virtual.taken_address_problems(cluster(), "cp1", Neighbour()) == []
    [problem] = virtual.taken_address_problems(
        cluster(), "cp1", Neighbour("52:54:00:12:34:56", "open")
    )
    assert "answers there from network card 52:54:00:12:34:56" in problem.cause
    assert "TCP port 6443 is open" in problem.cause
    [problem] = virtual.taken_address_problems(cluster(), "cp1", Neighbour(port="refused"))
    assert problem.cause.endswith("answers there")


def test_one_machine_has_it() -> None:
    own_site = site(keepalived="ours", virtual_address="10.0.0.10")
    assert not virtual.settled(cluster(), NODES, own_site)
    second = state("eth0 10.0.0.2/24", "eth0 10.0.0.10/32", virtual_address="10.0.0.10")
    assert virtual.settled(cluster(), NODES, {**own_site, "cp2": second})
    two_holders = {**own_site, "cp2": second, "cp3": second}
    assert not virtual.settled(cluster(), NODES, two_holders)
    assert virtual.holders("10.0.0.10", two_holders) == ["cp2", "cp3"]
    # one joins: its keepalived has not been heard by the others yet
    new = {**own_site, "cp2": second, "cp3": state("eth0 10.0.0.3/24")}
    assert not virtual.settled(cluster(), NODES, new)


def test_certificates_name_it() -> None:
    settings = full_settings(cluster())
    text = kubeadm.init_config(settings, versions.lock(settings), NODES)
    [names] = [line for line in text.splitlines() if "certSANs" in line]
    assert '"10.0.0.10"' in names
    assert 'controlPlaneEndpoint: "gpuboot-api:6443"' in text
    assert not kubeadm.balanced(settings.cluster, NODES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ""),
        ("", ""),
        ("vrrp_instance VI_1 {\n}\n", "keepalived\tforeign\n"),
        (
            virtual.keepalived(cluster(), CP1, NODES, site()["cp1"]),
            "keepalived\tours\nvirtual_address\t10.0.0.10\n",
        ),
    ],
)
def test_the_fact_tells_whose_keepalived_it_is(
    tmp_path: Path, text: str | None, expected: str
) -> None:
    script = resources.files("deploys.parts.node").joinpath("fact.sh").read_text()
    part = script[script.index("# keepalived: ") : script.index("[ -r /etc/kubernetes/pki/ca.crt")]
    path = tmp_path / "keepalived.conf"
    if text is not None:
        path.write_text(text)
    part = part.replace("/etc/keepalived/keepalived.conf", str(path))
    put = 'put() { printf \'%s\\t%s\\n\' "$1" "$2"; }\n'
    result = subprocess.run(["sh", "-c", put + part], capture_output=True, text=True, check=True)
    assert result.stdout == expected


@pytest.mark.parametrize(
    ("connection", "confirmed", "expected"),
    [
        ("exit 124", 1, Neighbour("52:54:00:12:34:56", "")),
        # whoever had the address has left
        ("exit 124", 22, Neighbour()),
        ("exit 0", 22, Neighbour("52:54:00:12:34:56", "open")),
        ("echo bash: connect: Connection refused >&2; exit 1", 22,
         Neighbour("52:54:00:12:34:56", "refused")),
    ],
)  # fmt: skip
def test_only_who_answers_now_has_the_address(
    tmp_path: Path, connection: str, confirmed: int, expected: Neighbour
) -> None:
    entry = f"10.0.0.10 dev eth0 lladdr 52:54:00:12:34:56  ref 1 used 9/{confirmed}/9probes 1 STALE"
    for name, text in (("timeout", connection), ("ip", f"echo {entry!r}")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    script = resources.files("deploys.parts.api_endpoint").joinpath("neighbour_fact.sh").read_text()
    result = subprocess.run(
        ["sh", "-c", f"PATH={tmp_path}:$PATH address=10.0.0.10 port=6443\n{script}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert virtual.parse_neighbour(result.stdout.splitlines()) == expected
