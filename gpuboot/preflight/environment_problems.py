"""Preflight of proxies in the environment of what talks to the API server, and of our commands."""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping

from gpuboot.config.inventory import API_NAME, Node
from gpuboot.config.settings import Settings
from gpuboot.hosts import proxy
from gpuboot.hosts.environment import ProxyVariable, proxy_of
from gpuboot.hosts.node_state import NodeState

# whose variables the kubelet gets; those of a later place count
_KUBELET = ("systemd", "/etc/default/kubelet", "/etc/sysconfig/kubelet", "kubelet")


def problems(node: Node, state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """Cause and remedy where kubelet, kubeadm or kubectl would look for the API behind a proxy."""
    cluster = settings.cluster
    api = (cluster.endpoint or API_NAME).removesuffix(":6443")
    of_kubelet = _of(state.proxy_variables, *_KUBELET)
    address, excepted = proxy_of(of_kubelet)
    if address and not proxy.is_direct(f"https://{api}", excepted):
        yield (
            f"its kubelet would reach the API server ({api}) through the proxy {address}, by the "
            f"environment of {' and '.join(dict.fromkeys(item.place for item in of_kubelet))}",
            "take the proxy out there (systemd: DefaultEnvironment in /etc/systemd/system.conf and "
            "its drop-ins, then `systemctl daemon-reexec`) and name it in settings.proxy, or add "
            f"{api} to NO_PROXY there",
        )
    address, excepted = proxy_of(_of(state.proxy_variables, "commands"))
    inside = [api, *map(_first_address, (cluster.service_cidr, cluster.pod_cidr))]
    if address and not all(proxy.is_direct(f"https://{host}", excepted) for host in inside):
        yield (
            f"commands run there with the proxy {address} in their environment, which kubeadm "
            "copies into the control plane's pods, and by which kubectl looks for the API server",
            "take the proxy out of `_env` in the inventory's data and name it in settings.proxy, "
            f"or add {api}, {cluster.service_cidr} and {cluster.pod_cidr} to NO_PROXY there",
        )


def warnings(
    nodes: Iterable[Node], states: Mapping[str, NodeState], settings: Settings
) -> list[str]:
    """A line for hosts whose /etc/environment names a proxy that the settings do not."""
    hosts: dict[str, list[str]] = {}
    for node in nodes:
        if node.host in states and not proxy.is_set(settings.proxy):
            address, _ = proxy_of(_of(states[node.host].proxy_variables, "/etc/environment"))
            if address:
                hosts.setdefault(address, []).append(node.host)
    return [
        f"{', '.join(names)}: /etc/environment names the proxy {address}, which gpuboot and "
        "containerd do not use; remedy: set settings.proxy, if these hosts reach the internet by it"
        for address, names in hosts.items()
    ]


def _of(variables: Iterable[ProxyVariable], *places: str) -> list[ProxyVariable]:
    """The variables of these places, in their order: a later place overrides an earlier one."""
    return [item for place in places for item in variables if item.place == place]


def _first_address(network: str) -> str:
    address = ipaddress.ip_network(network)[1]
    return f"[{address}]" if address.version == 6 else str(address)
