"""Preflight of addresses and networks."""

import ipaddress
from collections.abc import Iterator, Sequence

from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings, networks
from gpuboot.config.versions import parse
from gpuboot.hosts.node_state import NodeState

# devices that the cluster itself makes; docker0, cni-podman0 and the like are not its own
_OWN_DEVICES = (
    "cni0",
    "flannel.1",
    "flannel-v6.1",
    "flannel-wg",
    "flannel-wg-v6",
    "kube-ipvs0",
    "lo",
)
_IPVS_GATED = (1, 37)  # CHANGELOG-1.37.md of Kubernetes


def address(node: Node, state: NodeState) -> Iterator[tuple[str, str]]:
    """The node's address is one of the machine's addresses."""
    if node.address and node.address not in state.addresses:
        addresses = ", ".join(state.addresses) or "none"
        yield (
            f"address {node.address} is not on the machine (its addresses: {addresses})",
            "set address in the host's data to the one that other nodes can reach",
        )
    if not node.address:
        yield "it has no network address", "set address in the host's data"


def room(nodes: Sequence[Node], settings: Settings) -> list[Problem]:
    """A problem where `cluster.pod_cidr` has no network of its own for each node."""
    pods = ipaddress.ip_network(settings.cluster.pod_cidr)
    node_prefix = networks.NODE_PREFIX[pods.version]
    places = 2 ** max(0, node_prefix - pods.prefixlen)
    if places >= len(nodes):
        return []
    cause = (
        f"cluster.pod_cidr {pods} has room for {places} nodes (/{node_prefix} for each), the "
        f"inventory has {len(nodes)}"
    )
    return [Problem("", cause, "choose a larger network, e.g. 10.244.0.0/16")]


def warnings(settings: Settings, minor: str) -> list[str]:
    """What the network is made of and upstream is about to drop. + minor: as `1.37`"""
    if settings.cluster.proxy_mode != "ipvs" or parse(minor) < _IPVS_GATED:
        return []
    return [
        f"cluster.proxy_mode is ipvs, which is deprecated, and which Kubernetes {minor} has behind "
        'the feature gate KubeProxyIPVS; remedy: set cluster.proxy_mode = "nftables" and run'
    ]


def overlaps(state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """The cluster's networks are none that the machine routes elsewhere, or that others have."""
    member = bool(state.kubeconfigs)
    other_networks = [(network, f"device {device}", device) for network, device in state.routes]
    if not member:  # a cluster keeps its networks, and has worked with these
        other_networks += [(network, program, "") for network, program in state.other_networks]
    for key in ("pod_cidr", "service_cidr"):
        inside = ipaddress.ip_network(getattr(settings.cluster, key))
        for network, owner, device in other_networks:
            outside = ipaddress.ip_network(network, strict=False)
            if device in _OWN_DEVICES or not inside.overlaps(outside):
                continue
            # with host-gw the pods of another node are behind the nodes' own network
            if (
                member
                and settings.cluster.flannel_backend == "host-gw"
                and _is_share(outside, inside)
            ):
                continue
            yield (
                f"cluster.{key} {inside} overlaps its network {outside} ({owner})",
                f"choose another cluster.{key}, or give that network other addresses",
            )


def _is_share(part: networks.Network, pods: networks.Network) -> bool:
    """Whether a network is what one node has of the pods' network."""
    return part.prefixlen == networks.NODE_PREFIX[pods.version] and part.overlaps(pods)
