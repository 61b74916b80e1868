"""The virtual address of the API servers (`cluster.virtual_ip`), which keepalived looks after.

keepalived runs on each control plane. The cluster itself does not know the address: nodes resolve
its endpoint's name to it (`gpuboot.cluster.endpoint`), so it can come, change and go while the
cluster lives. The health check is that of kubeadm's guide (docs/ha-considerations.md).
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuboot.cluster.kubeadm import API_PORT
from gpuboot.config.inventory import API_NAME, Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Cluster
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.node_state import NodeState
from gpuboot.templates import render

_ROUTER_IDS = 255


def router_id(cluster: Cluster) -> int:
    """VRRP's number of the address, 1 to 255. + cluster: with a virtual address"""
    if cluster.virtual_router_id is not None:
        return cluster.virtual_router_id
    return int(ipaddress.ip_address(cluster.virtual_ip or "")) % _ROUTER_IDS + 1


def devices(address: str, state: NodeState) -> list[str]:
    """The network devices of a machine whose network an address is in."""
    ip = ipaddress.ip_address(address)
    names = [
        device
        for device, own_address in state.interfaces
        if own_address.partition("/")[0] != address
        and ip in ipaddress.ip_interface(own_address).network
    ]
    return list(dict.fromkeys(names))


def device(cluster: Cluster, node: Node, state: NodeState) -> str:
    """The device that gets the virtual address; "" where it cannot be told."""
    if cluster.virtual_ip_interface:
        return cluster.virtual_ip_interface
    candidates = devices(cluster.virtual_ip or "", state)
    node_device = _device_of(node.address, state)
    return (
        node_device if node_device in candidates else candidates[0] if len(candidates) == 1 else ""
    )


def _device_of(address: str, state: NodeState) -> str:
    matches = (
        name for name, own_address in state.interfaces if own_address.partition("/")[0] == address
    )
    return next(matches, "")


def keepalived(cluster: Cluster, node: Node, nodes: Sequence[Node], state: NodeState) -> str:
    """keepalived's configuration on a control plane. + state: of its machine"""
    peers = [item for item in nodes if item.role == "control_plane" and item != node]
    return render(
        "kubernetes/keepalived.conf.j2",
        name=API_NAME,
        node=node,
        peers=peers,
        port=API_PORT,
        address=cluster.virtual_ip,
        router_id=router_id(cluster),
        device=device(cluster, node, state),
        vrrp_device=_device_of(node.address, state),
    )


def peers_known(nodes: Iterable[Node]) -> bool:
    """Whether each control plane's address is known; keepalived hears no others."""
    return all(node.address for node in nodes if node.role == "control_plane")


def unit_file() -> str:
    """What is laid over the distribution's unit of keepalived."""
    return render("kubernetes/keepalived-unit.conf.j2")


def holders(address: str, states: Mapping[str, NodeState]) -> list[str]:
    """Names of the machines that have an address. + states: by the names that are returned"""
    return [name for name, state in states.items() if address in state.addresses]


def settled(cluster: Cluster, nodes: Iterable[Node], states: Mapping[str, NodeState]) -> bool:
    """Whether keepalived had the address on all control planes that were read, and one held it."""
    controls = {
        node.host: states[node.host]
        for node in nodes
        if node.role == "control_plane" and node.host in states
    }
    address = cluster.virtual_ip or ""
    all_have_address = all(state.virtual_address == address for state in controls.values())
    return all_have_address and len(holders(address, controls)) == 1


def problems(
    nodes: Sequence[Node], states: Mapping[str, NodeState], cluster: Cluster
) -> list[Problem]:
    """Why the virtual address cannot be as the settings have it, before anything is touched.

    + states: by inventory name; of machines that cannot be reached there is none
    """
    problems = _left_behind(nodes, states, cluster)
    if cluster.virtual_ip is None:
        return problems
    for node in nodes:
        state = states.get(node.host)
        if node.address == cluster.virtual_ip:
            problems.append(
                Problem(
                    node.host,
                    f"cluster.virtual_ip {cluster.virtual_ip} is its own address",
                    "choose a free address, which no machine has",
                )
            )
        elif state and cluster.virtual_ip in state.addresses and not state.virtual_address:
            problems.append(
                Problem(
                    node.host,
                    f"it has the address {cluster.virtual_ip} (cluster.virtual_ip) already, not by "
                    "gpuboot",
                    "choose a free address; or take it away from what put it there",
                )
            )
        elif state and node.role == "control_plane":
            problems += _of_control_plane(cluster, node, state)
    return problems


def _of_control_plane(cluster: Cluster, node: Node, state: NodeState) -> list[Problem]:
    address = ipaddress.ip_address(cluster.virtual_ip or "")
    if state.keepalived == "foreign":
        cause = (
            "keepalived there has a configuration of its own, in whose place gpuboot would put "
            f"that of cluster.virtual_ip {address}"
        )
        remedy = (
            "move what it does elsewhere and remove /etc/keepalived/keepalived.conf; or, if it "
            "holds the API's address, set cluster.endpoint instead of cluster.virtual_ip"
        )
        return [Problem(node.host, cause, remedy)]
    if not node.address:
        return []  # a problem of its own
    version = ipaddress.ip_address(node.address).version
    if address.version != version:
        cause = f"cluster.virtual_ip {address} is of another IP version than its {node.address}"
        return [Problem(node.host, cause, f"choose an IPv{version} address")]
    return _of_device(cluster, node, state)


def _of_device(cluster: Cluster, node: Node, state: NodeState) -> list[Problem]:
    present = list(dict.fromkeys(name for name, _ in state.interfaces))
    configured = cluster.virtual_ip_interface
    if configured and configured not in present:
        cause = (
            f"it has no network device {configured} with an address (cluster.virtual_ip_interface)"
        )
        remedy = f"name one of {', '.join(present)}; or leave it out, if names differ"
        return [Problem(node.host, cause, remedy)]
    if device(cluster, node, state):
        return []
    candidates = devices(cluster.virtual_ip or "", state)
    if candidates:
        cause = f"cluster.virtual_ip {cluster.virtual_ip} is in networks of {', '.join(candidates)}"
        return [Problem(node.host, cause, "say which by cluster.virtual_ip_interface")]
    interfaces = ", ".join(f"{address} ({name})" for name, address in state.interfaces) or "none"
    cause = (
        f"cluster.virtual_ip {cluster.virtual_ip} is in none of its networks (it has {interfaces})"
    )
    remedy = (
        "choose a free address of a network that all control planes are in; or, where addresses "
        "are routed one by one, set cluster.virtual_ip_interface"
    )
    return [Problem(node.host, cause, remedy)]


def _left_behind(
    nodes: Sequence[Node], states: Mapping[str, NodeState], cluster: Cluster
) -> list[Problem]:
    """Workers that cannot be told that the address goes, and would have no API server."""
    old_addresses = {state.virtual_address for state in states.values()} - {"", cluster.virtual_ip}
    unreachable = [node.host for node in nodes if node.role == "worker" and node.host not in states]
    if not old_addresses or not unreachable:
        return []
    names, old = ", ".join(unreachable), ", ".join(sorted(old_addresses))
    cause = (
        f"the virtual address {old} is to go, and {names}, now out of reach, would go on asking "
        "for the API there"
    )
    remedy = (
        f"set cluster.virtual_ip to {old} until all workers answer; or remove those that are gone "
        "(pyinfra INVENTORY deploys/remove.py --data gpuboot_remove=NODE) and take them out of the "
        "inventory"
    )
    return [Problem("", cause, remedy)]


@dataclass(frozen=True)
class Neighbour:
    """Who answers at an address, asked from a machine in its network.

    + mac: address of the network card that answers for it now; "" for none
    + port: what became of a connection to the API's port: open, refused, or "" for no answer
    """

    mac: str = ""
    port: str = ""


def parse_neighbour(lines: Iterable[str]) -> Neighbour:
    """What the fact's script printed. Raises `FactOutputError` when it did not finish."""
    values = Fields(lines, last="end")
    return Neighbour(values.first("mac"), values.first("port"))


def asker(nodes: Sequence[Node], states: Mapping[str, NodeState], cluster: Cluster) -> Node | None:
    """The control plane that asks whether the address is free; None where one of ours may have it.

    + states: by inventory name
    """
    controls = [node for node in nodes if node.role == "control_plane"]
    if cluster.virtual_ip is None or not all(node.host in states for node in controls):
        return None
    is_held = any(states[node.host].virtual_address == cluster.virtual_ip for node in controls)
    if is_held or holders(cluster.virtual_ip, states):
        return None
    return next((node for node in controls if node.leader), None)


def taken_address_problems(cluster: Cluster, host: str, neighbour: Neighbour) -> list[Problem]:
    """A machine that is none of the inventory's and has the address. + host: which has asked"""
    if not (neighbour.mac or neighbour.port):
        return []
    card = f" from network card {neighbour.mac}" if neighbour.mac else ""
    port = f", and its TCP port {API_PORT} is open" if neighbour.port == "open" else ""
    return [
        Problem(
            host,
            f"cluster.virtual_ip {cluster.virtual_ip} is taken: a machine that is not in the "
            f"inventory answers there{card}{port}",
            "choose a free address; or, if it is a load balancer of your own before these control "
            "planes, set cluster.endpoint instead",
        )
    ]
