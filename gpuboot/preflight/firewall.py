"""Preflight of firewalls on the nodes: which traffic of the cluster their rules would drop.

The ports are those of docs/servers.md, as far as this site needs them. Pods are asked by the one
thing that all of them do: names, at the cluster's DNS and the one outside.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.packet_rules import Chain, Condition, PacketFilter, Rule
from gpuboot.hosts.packet_verdict import End, Flow, Judgement, Network, judge
from gpuboot.preflight import firewall_remedies

POD_BRIDGE = "cni0"
_DOCKER_USER = "DOCKER-USER"
_LET_PASS = Rule("", "accept")
_DNS = 53
_API_PORT = 6443
_TUNNELS = {  # backend, version -> flannel's device and UDP port
    ("vxlan", 4): ("flannel.1", 8472),
    ("vxlan", 6): ("flannel-v6.1", 8472),
    ("wireguard", 4): ("flannel-wg", 51820),
    ("wireguard", 6): ("flannel-wg-v6", 51821),
}


@dataclass(frozen=True)
class Need:
    """A port that nodes reach at nodes.

    + control_plane: it is at control planes only
    + peers: other control planes alone reach it
    + pods: so do pods of the same node
    """

    proto: str
    port: int | None
    control_plane: bool = False
    peers: bool = False
    pods: bool = False

    @property
    def label(self) -> str:
        """The port as people write it: 10250/tcp."""
        return f"{self.port}/{self.proto}" if self.port else "VRRP"

    def at(self, node: Node) -> bool:
        """Whether the port is at a node."""
        return not self.control_plane or node.role == "control_plane"

    def of(self, node: Node) -> bool:
        """Whether a node reaches it."""
        return not self.peers or node.role == "control_plane"


@dataclass(frozen=True)
class Passage:
    """A flow that has to pass a node.

    + label: the port, for messages
    + direction: from or to whom, for messages
    """

    flow: Flow
    label: str
    direction: str


def needs(settings: Settings) -> list[Need]:
    """The ports that a site with these settings needs."""
    needed_ports = [
        Need("tcp", _API_PORT, control_plane=True, pods=True),
        Need("tcp", 2379, control_plane=True, peers=True),
        Need("tcp", 2380, control_plane=True, peers=True),
        Need("tcp", 10250, pods=True),
    ]
    if settings.cluster.virtual_ip:
        needed_ports.append(Need("vrrp", None, control_plane=True, peers=True))
    if tunnel := _tunnel(settings):
        needed_ports.append(Need("udp", tunnel[1]))
    if settings.monitoring.enabled:
        needed_ports.append(Need("tcp", 9100, pods=True))
        if settings.monitoring.control_plane_targets:
            needed_ports += [Need("tcp", port, True, pods=True) for port in (2381, 10257, 10259)]
            needed_ports.append(Need("tcp", 10249, pods=True))
    return needed_ports


def _tunnel(settings: Settings) -> tuple[str, int] | None:
    version = ipaddress.ip_network(settings.cluster.pod_cidr).version
    return _TUNNELS.get((settings.cluster.flannel_backend, version))


def problems(
    nodes: Sequence[Node], states: Mapping[str, NodeState], settings: Settings
) -> Iterator[Problem]:
    """A problem for each place at which rules of a node drop traffic of the cluster."""
    for node, state in _read(nodes, states):
        drops: dict[tuple[str, str], list[tuple[End, Passage]]] = {}
        for passage, result in _judgements(node, state, nodes, settings):
            if result.drop:
                place = (passage.flow.hook, result.drop.label)
                drops.setdefault(place, []).append((result.drop, passage))
        for (hook, label), items in drops.items():
            flows = [passage.flow for _, passage in items]
            pods = settings.cluster.pod_cidr
            yield Problem(
                node.host,
                f"its firewall drops {_names(passage for _, passage in items)} ({label})",
                firewall_remedies.remedy(hook, items[0][0], flows, state, pods),
            )


def warnings(
    nodes: Sequence[Node], states: Mapping[str, NodeState], settings: Settings
) -> Iterator[str]:
    """A line for each rule that may drop traffic of the cluster, and cannot be judged."""
    for node, state in _read(nodes, states):
        doubts: dict[str, list[Passage]] = {}
        for passage, result in _judgements(node, state, nodes, settings):
            for doubt in result.doubts:
                doubts.setdefault(doubt.label, []).append(passage)
        for label, passages in doubts.items():
            yield (
                f"{node.host}: on a rule of its firewall it depends whether it drops "
                f"{_names(passages)}, and preflight cannot judge it ({label}); remedy: make sure "
                "that it lets these pass"
            )
        for program in state.packet_filter.unread:
            yield (
                f"{node.host}: rules of {program} are in force there and cannot be read; remedy: "
                "install iptables, or make sure that they let the ports of docs/servers.md pass"
            )


def _read(
    nodes: Iterable[Node], states: Mapping[str, NodeState]
) -> Iterator[tuple[Node, NodeState]]:
    return ((node, states[node.host]) for node in nodes if node.host in states and node.address)


def _judgements(
    node: Node, state: NodeState, nodes: Sequence[Node], settings: Settings
) -> Iterator[tuple[Passage, Judgement]]:
    rules = foreseen(state.packet_filter, settings)
    for passage in _passages(node, state, nodes, settings):
        yield passage, judge(rules if passage.flow.hook == "forward" else state.packet_filter,
                             passage.flow)  # fmt: skip


def beside_docker(rules: PacketFilter, settings: Settings) -> bool:
    """Whether pods need rules in Docker's chain, in case that somebody sets the policy to DROP.

    With nftables flannel accepts them in a table of its own, after which iptables' table drops them
    all the same; otherwise it does so at the end of iptables' chain, where the policy comes after.
    """
    return settings.cluster.proxy_mode == "nftables" and any(
        _DOCKER_USER in table.chains for table in rules.tables if table.program != "nft"
    )


def foreseen(rules: PacketFilter, settings: Settings) -> PacketFilter:
    """The rules with those for pods that come during the run: flannel's, and ours for Docker."""
    nftables = settings.cluster.proxy_mode == "nftables"
    pods = (settings.cluster.pod_cidr,)
    pod_rules = [Rule("", "accept", "", (Condition(side, pods),)) for side in ("saddr", "daddr")]
    tables = []
    for table in rules.tables:
        chains = dict(table.chains)
        if table.program != "nft" and not nftables and (forward := chains.get("FORWARD")):
            end = [*forward.rules, _LET_PASS]
            chains["FORWARD"] = Chain(forward.hook, forward.policy, end)
        elif table.program != "nft" and (users := chains.get(_DOCKER_USER)):
            chains[_DOCKER_USER] = Chain(users.hook, users.policy, [*pod_rules, *users.rules])
        tables.append(replace(table, chains=chains))
    return replace(rules, tables=tuple(tables))


def _names(passages: Iterable[Passage]) -> str:
    whom: dict[str, list[str]] = {}
    for passage in passages:
        whom.setdefault(passage.direction, []).append(passage.label)
    return "; ".join(
        f"{', '.join(dict.fromkeys(labels))} {direction}" for direction, labels in whom.items()
    )


def _passages(
    node: Node, state: NodeState, nodes: Sequence[Node], settings: Settings
) -> Iterator[Passage]:
    """What has to pass a node, where its rules drop anything at all."""
    if not state.packet_filter.drops:
        return
    pods = ipaddress.ip_network(settings.cluster.pod_cidr)
    network = ipaddress.ip_network(node.address)
    device = next((name for name, at in state.interfaces if _address(at) == node.address), "")
    version, all_needs = network.version, needs(settings)
    peers = [item for item in nodes if item.address and item != node]
    for need in all_needs:
        for peer in peers:
            address = ipaddress.ip_network(peer.address)
            if address.version == version and need.at(node) and need.of(peer):
                flow = Flow("input", version, need.proto, need.port, address, network, iif=device)
                yield Passage(flow, need.label, "from other nodes")
            if address.version == version and need.at(peer) and need.of(node):
                flow = Flow("output", version, need.proto, need.port, network, address, oif=device)
                yield Passage(flow, need.label, "to other nodes")
        if need.pods and need.at(node) and pods.version == version:
            flow = Flow("input", version, need.proto, need.port, pods, network, iif=POD_BRIDGE)
            yield Passage(flow, need.label, "from pods")
    yield from _forwarded(pods, device, settings, bool(peers))


def _forwarded(
    pods: Network, device: str, settings: Settings, has_peers: bool
) -> Iterator[Passage]:
    version = pods.version
    tunnel = (_tunnel(settings) or (device, 0))[0]
    out = Flow("forward", version, "udp", _DNS, pods, None, POD_BRIDGE, device)
    yield Passage(out, "packets", "from pods to other networks")
    within = Flow("forward", version, "udp", _DNS, pods, pods, POD_BRIDGE, POD_BRIDGE)
    yield Passage(within, "packets", "between pods")
    if has_peers:
        for ways in ((POD_BRIDGE, tunnel), (tunnel, POD_BRIDGE)):
            flow = Flow("forward", version, "udp", _DNS, pods, pods, *ways)
            yield Passage(flow, "packets", "between pods of different nodes")


def _address(interface: str) -> str:
    return interface.partition("/")[0]
