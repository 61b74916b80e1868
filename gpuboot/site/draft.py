"""A site that is about to be written down: hosts that were read, and what a person chose."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuboot.config.inventory import default_name
from gpuboot.config.problems import Problem
from gpuboot.config.ssh_targets import Target
from gpuboot.hosts.gpu_names import summary
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.reading import HostReading

# file names in group_data that mean a group of hosts, not a site
_RESERVED = ("all", "control_plane", "workers", "gpu_hosts", "monitor")
_SITE = re.compile(r"[a-z][a-z0-9-]{0,40}")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# devices of container runtimes and virtual machines: their addresses lead to no other host
_LOCAL_DEVICES = ("cni", "flannel", "kube-", "veth", "docker", "br-", "virbr", "lo")


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a person decides about a site.

    + name: of the inventory file, of its group_data, and of the cluster
    + docker: Docker hosts instead of a cluster
    + first: inventory names of the control plane, or of the one monitoring host; empty: the default
    + endpoint: `cluster.endpoint`, a load balancer of the site's own; "" for none
    + ssh_key, ssh_config: files; "" for the usual ones
    + sudo_password: sudo asks for a password, which every run has to be given
    """

    name: str
    docker: bool = False
    first: tuple[str, ...] = ()
    endpoint: str = ""
    ssh_key: str = ""
    ssh_config: str = ""
    sudo_password: bool = False


@dataclass(frozen=True, kw_only=True)
class SiteHost:
    """A host as it is written down.

    + name: in the inventory
    + node_name: in Kubernetes, or the label `node` of its series
    + address: where the other hosts reach it; "" when it has none
    + more_addresses: others that might be meant
    """

    name: str
    target: Target
    node_name: str
    address: str
    more_addresses: tuple[str, ...]
    root_login: bool
    state: NodeState

    @property
    def gpus(self) -> int:
        """How many NVIDIA GPUs its PCI bus shows."""
        return len(self.state.gpus)

    @property
    def models(self) -> str:
        """Its GPUs by model, `8 x H100 SXM5 80GB`, or `no GPU`."""
        return summary(gpu.device for gpu in self.state.gpus)

    @property
    def system(self) -> str:
        """Operating system and size in a few words."""
        state = self.state
        name = state.os_name or "unknown system"
        return f"{name}, {state.arch}, {state.cpus} CPUs, {state.memory_mib / 1024:.0f} GiB"


@dataclass(frozen=True, kw_only=True)
class Site:
    """A site, ready to be written.

    + groups: group of the inventory -> its hosts
    """

    choices: Choices
    hosts: tuple[SiteHost, ...]
    groups: Mapping[str, tuple[SiteHost, ...]]


def name_problems(name: str) -> list[Problem]:
    """What is wrong with the name of a site."""
    if name in _RESERVED:
        return [Problem("", f"the name {name} means a group of hosts", "choose another --name")]
    if not _SITE.fullmatch(name):
        cause = f"{name!r} is no name for a site: lower case, digits and -, a letter first"
        return [Problem("", cause, "choose another --name, e.g. prod")]
    return []


def inventory_names(targets: Sequence[Target]) -> dict[str, Target]:
    """Inventory name -> target: the host as it was given, with its port where two share a host."""
    counts = Counter(target.host for target in targets)
    return {
        target.host if counts[target.host] == 1 else f"{target.host}-{target.port or 22}": target
        for target in targets
    }


def site(targets: Sequence[Target], readings: Mapping[str, HostReading], choices: Choices) -> Site:
    """The site that these hosts make.

    + readings: by inventory name, of every target
    """
    names = inventory_names(targets)
    addresses = _addresses(readings)
    node_names = _node_names({name: readings[name].state.hostname for name in names})
    hosts = tuple(
        SiteHost(
            name=name,
            target=target,
            node_name=node_names[name],
            address=addresses[name],
            more_addresses=_more_addresses(readings[name].state, addresses[name]),
            root_login=readings[name].root_login,
            state=readings[name].state,
        )
        for name, target in names.items()
    )
    return Site(choices=choices, hosts=hosts, groups=_groups(hosts, choices))


def default_first(hosts: Sequence[tuple[str, int]], docker: bool) -> str:
    """The host that leads when nobody is named: the first; for Docker, the first without GPUs.

    + hosts: inventory name and number of GPUs
    """
    without_gpus = [name for name, gpus in hosts if not gpus]
    return without_gpus[0] if docker and without_gpus else hosts[0][0]


def _groups(hosts: Sequence[SiteHost], choices: Choices) -> dict[str, tuple[SiteHost, ...]]:
    first = choices.first or (
        default_first([(host.name, host.gpus) for host in hosts], choices.docker),
    )
    leading = tuple(host for name in first for host in hosts if host.name == name)
    if choices.docker:
        # a host without GPUs that is not the monitor is one too many: the checks tell of it
        remaining_hosts = tuple(host for host in hosts if host.gpus or host not in leading)
        return {"gpu_hosts": remaining_hosts, "monitor": leading}
    remaining_hosts = tuple(host for host in hosts if host not in leading)
    return {"control_plane": leading, "workers": remaining_hosts}


def _addresses(readings: Mapping[str, HostReading]) -> dict[str, str]:
    """The address of each host: of its default route, unless hosts share that one.

    Virtual machines behind NAT all have the same there; the address that SSH leads to tells them
    apart, where it is the machine's own.
    """
    default = {name: reading.state.default_address for name, reading in readings.items()}
    counts = Counter(default.values())
    return {
        name: reading.peer
        if counts[default[name]] > 1 and reading.peer in reading.state.addresses
        else default[name]
        for name, reading in readings.items()
    }


def _more_addresses(state: NodeState, main_address: str) -> tuple[str, ...]:
    """Addresses of the same family that other hosts may reach, beside the chosen one."""
    local = [
        ipaddress.ip_network(network, strict=False)
        for network, device in state.routes
        if device.startswith(_LOCAL_DEVICES)
    ]
    return tuple(
        item
        for item in state.addresses
        if item != main_address
        and (":" in item) == (":" in main_address)
        and not any(ipaddress.ip_address(item) in network for network in local)
    )


def _node_names(hostnames: Mapping[str, str]) -> dict[str, str]:
    """Inventory name -> node name: the machine's short host name, where it tells it apart."""
    short = {name: text.partition(".")[0].lower() for name, text in hostnames.items()}
    counts = Counter(short.values())
    return {
        name: label
        if counts[label] == 1 and label != "localhost" and _LABEL.fullmatch(label)
        else default_name(name)
        for name, label in short.items()
    }
