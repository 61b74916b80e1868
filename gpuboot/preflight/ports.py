"""Preflight of the TCP ports that a node needs: who has them, and how they become free."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.remains import POD

_NODE_EXPORTER = "prometheus-node-exporter"  # the chart's name in that of the stack


@dataclass(frozen=True)
class Use:
    """What needs a port.

    + owners: processes of ours that may have it on a later run
    + moved: the setting that spares the port; "" for none
    """

    name: str
    owners: tuple[str, ...]
    moved: str = ""


_KUBELET, _PROXY = Use("kubelet", ("kubelet",)), Use("kube-proxy", ("kube-proxy",))
_ETCD = Use("etcd", ("etcd",))
_EVERY_NODE = {
    10250: _KUBELET,
    10256: _PROXY,
}
_LOCAL_HEALTH_PORTS = {
    10248: _KUBELET,  # its health, which kubeadm waits for
    8081: Use("flannel", ("flanneld",)),  # its health: it ends where it cannot listen
}
_CONTROL_PLANE = {
    6443: Use("kube-apiserver", ("kube-apiserver",)),
    2379: _ETCD,
    2380: _ETCD,
    2381: _ETCD,  # its metrics and health
    10257: Use("kube-controller", ("kube-controller",)),  # the kernel cuts names to 15 characters
    10259: Use("kube-scheduler", ("kube-scheduler",)),
}


def needed(node: Node, settings: Settings) -> dict[int, Use]:
    """TCP ports of the machine that its node listens on, with these settings."""
    uses = _EVERY_NODE | _LOCAL_HEALTH_PORTS
    if node.role == "control_plane":
        uses |= _CONTROL_PLANE
    monitoring = settings.monitoring
    if node.gpus and settings.dcgm == "host":
        uses[9400] = Use("dcgm-exporter", ("dcgm-exporter",))
    if not monitoring.enabled:
        return uses
    if monitoring.control_plane_targets:
        moved = "monitoring.control_plane_targets = False"
        uses[10249] = Use("kube-proxy", ("kube-proxy",), moved)
    if port := _node_exporter(monitoring.values):
        key = f'monitoring.values["{_NODE_EXPORTER}"]["service"]'
        uses[port] = Use("node-exporter", ("node_exporter",), f'{key} = {{"port": …}}')
    for name, port in monitoring.node_ports.items():
        # nothing listens there: kube-proxy has the kernel pass their connections on
        setting = f"monitoring.node_ports.{name}"
        uses[port] = Use(setting, (), f"another {setting}")
    return uses


def _node_exporter(values: Mapping[str, Any]) -> int:
    """Port of node-exporter; 0 where the site's own values leave it out."""
    if not values.get("nodeExporter", {}).get("enabled", True):
        return 0
    return int(values.get(_NODE_EXPORTER, {}).get("service", {}).get("port", 9100))


def problems(node: Node, state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """The ports are free, or held by the node that gpuboot made."""
    remains = state.remains
    is_own_node = bool(state.kubeconfigs or state.half_made or remains.is_gpuboot_node)
    for port, use in sorted(needed(node, settings).items()):
        owner = state.ports.get(port)
        unit = remains.port_units.get(str(port), "-")
        if owner is None or (is_own_node and _is_ours(owner, unit, use)):
            continue
        yield (
            f"TCP port {port} is in use by {holder(state, port)}; {use.name} needs it",
            freed(state, port) + (f"; or set {use.moved}" if use.moved else ""),
        )


def flannel(state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """The UDP port of flannel's backend is free, on a machine that has no flannel of ours yet."""
    six = ipaddress.ip_network(settings.cluster.pod_cidr).version == 6
    backend = settings.cluster.flannel_backend
    port = {"vxlan": "8472", "wireguard": "51821" if six else "51820"}.get(backend, "")
    owner = state.remains.udp_ports.get(port)
    # VXLAN devices share a port
    if owner is None or state.remains.is_gpuboot_node or (owner == "?" and backend == "vxlan"):
        return
    process = "a WireGuard device" if owner == "?" else owner
    yield (
        f"UDP port {port} is in use by {process}; flannel ({backend}) needs it",
        f"give it another port (`wg show` and `ss -lunp 'sport = :{port}'` name it there), or set "
        "another cluster.flannel_backend",
    )


def _is_ours(owner: str, unit: str, use: Use) -> bool:
    """Whether a process on a node of ours is the node's own. Without ss it is not known whose."""
    if owner == "?" or unit == POD:
        return True
    is_known_owner = any(name.startswith(owner) or owner.startswith(name) for name in use.owners)
    return is_known_owner and unit in ("-", "kubelet.service")


def holder(state: NodeState, port: int) -> str:
    """Who has a port, in words: `node_exporter (prometheus-node-exporter.service)`."""
    owner, unit = state.ports[port], state.remains.port_units.get(str(port), "-")
    if owner == "?":
        return "an unknown process"
    folders = [item.folder for item in state.remains.etcd_processes if item.folder]
    data = f", data in {', '.join(folders)}" if owner == "etcd" and folders else ""
    if unit.startswith("docker:"):
        return f"{owner} (Docker container {unit.removeprefix('docker:')[:12]}{data})"
    return f"{owner} ({unit}{data})" if unit not in ("-", POD) else owner


def freed(state: NodeState, port: int) -> str:
    """What a person does about it."""
    owner, unit = state.ports[port], state.remains.port_units.get(str(port), "-")
    if unit.startswith("docker:"):
        return f"stop that container or give it another port: docker ps | grep {unit[7:19]}"
    if owner == "docker-proxy":
        return f"publish another port of that container: docker ps --filter publish={port}"
    if unit.endswith(".service"):
        return (
            f"give it another port or, if nobody needs it, `systemctl disable --now {unit}` there"
        )
    return f"stop what listens there: ss -ltnp 'sport = :{port}'"
