"""Preflight of what others left: an etcd, a cluster, a pod network. A person decides.

Remedies move what somebody may need, and delete only what a kernel makes anew.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping

from gpuboot.cluster.flannel import CNI_FILE
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.remains import PUT_ASIDE, TAKEN_OUT, EtcdData, Remains

Finding = tuple[str, str]  # cause, remedy
_FOLDER, _, _FLANNEL_FILE = CNI_FILE.rpartition("/")
_ASIDE = "/root/cni-before-gpuboot"
_MAX_LINKS = 3  # of many network devices


def problems(node: Node, state: NodeState, settings: Settings) -> Iterator[Finding]:
    """What keeps a machine from becoming a node, or would be lost by it."""
    remains = state.remains
    if remains.cluster:
        yield _cluster(state)
    if node.role == "control_plane" and remains.etcd_data:
        yield _etcd(remains, remains.etcd_data, state.clock)
    yield from _cni(remains)
    if remains.links:
        yield _links(remains.links)
    yield from _dead_routes(remains, settings)


def warnings(nodes: Iterable[Node], states: Mapping[str, NodeState]) -> list[str]:
    """A line for each worker with somebody's etcd, which is in nobody's way there."""
    lines = []
    for node in nodes:
        if node.role != "worker" or node.host not in states:
            continue
        state = states[node.host]
        parts = [f"{item} runs" for item in _processes(state.remains)]
        if data := state.remains.etcd_data:
            parts.append(f"/var/lib/etcd has {_data(data, state.clock)}")
        if parts:
            lines.append(
                f"[{node.host}] an etcd that gpuboot did not make is there: {'; '.join(parts)}; a "
                "worker needs none, and a run leaves it alone"
            )
    return lines


def _cluster(state: NodeState) -> Finding:
    kubelet = state.remains.kubelet
    is_node = kubelet or any("kubelet" in path for path in state.remains.credentials)
    age = f", changed {_ago(state.clock - kubelet.changed)}" if kubelet else ""
    mark = ""
    if state.half_made:
        mark = (
            f", and a kubeadm {' and '.join(state.half_made)} of an earlier version of gpuboot did "
            "not end there: whose they are cannot be told"
        )
    parts = "; ".join(state.remains.cluster)
    cause = f"there are parts of a cluster that gpuboot did not make: {parts}{age}{mark}"
    return cause, TAKEN_OUT if is_node else PUT_ASIDE


def _etcd(remains: Remains, data: EtcdData, clock: float) -> Finding:
    if data.names == ("lost+found",):
        return (
            "/var/lib/etcd has lost+found in it, and kubeadm takes an empty folder only",
            "run `rmdir /var/lib/etcd/lost+found` there: fsck makes it when it needs it",
        )
    running = ", ".join(f"; {item} runs" for item in _processes(remains))
    units = [item.unit for item in remains.etcd_processes if item.unit.endswith(".service")]
    stop = f"stop it (`systemctl disable --now {units[0]}`) and " if units else ""
    return (
        f"/var/lib/etcd has {_data(data, clock)}, which gpuboot did not make{running}",
        f"use another machine for the control plane; or, if nobody needs that etcd there, {stop}"
        "put its data aside: `mkdir /var/lib/etcd-before-gpuboot && mv /var/lib/etcd/* "
        "/var/lib/etcd-before-gpuboot/`",
    )


def _processes(remains: Remains) -> list[str]:
    """Each etcd that runs: `etcd.service (data in /srv/etcd)`."""
    return [
        (item.unit if item.unit != "-" else "an etcd")
        + (f" (data in {item.folder})" if item.folder else "")
        for item in remains.etcd_processes
    ]


def _data(data: EtcdData, clock: float) -> str:
    size = f"{data.size_kib} KiB" if data.size_kib < 1024 else f"{data.size_kib / 1024:.0f} MiB"
    age_text = f", last written {_ago(clock - data.written_at)}" if data.written_at else ""
    return f"data of an etcd ({', '.join(data.names)}: {size}{age_text})"


def _ago(seconds: float) -> str:
    for length, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name} ago"
    return "just now"


def _cni(remains: Remains) -> Iterator[Finding]:
    """Configurations of CNI: containerd takes the first by name, and fails where that is broken."""
    for name, plugin in sorted(remains.cni_files.items()):
        if name < _FLANNEL_FILE:
            plugin_text = f" (plugin {plugin})" if plugin != "-" else ""
            yield (
                f"{_FOLDER}/{name}{plugin_text} is the configuration of another pod network, and "
                f"containerd would take it before flannel's ({_FLANNEL_FILE}), by its name",
                f"if nobody needs it: `mkdir -p {_ASIDE} && mv {_FOLDER}/{name} {_ASIDE}/` there",
            )
    for folder in remains.cni_folders:
        if folder.rstrip("/") != _FOLDER:
            yield (
                f"a file in /etc/containerd/conf.d has conf_dir = {folder}, and flannel writes its "
                f"configuration into {_FOLDER}",
                "take conf_dir out of that file",
            )


def _links(links: tuple[str, ...]) -> Finding:
    listed_links = [*links[:_MAX_LINKS], *(["…"] if len(links) > _MAX_LINKS else [])]
    commands = [
        "`ip address flush dev tunl0`" if link == "tunl0" else f"`ip link delete {link}`"
        for link in links[:_MAX_LINKS]
    ]
    return (
        f"network devices of another pod network are there: {', '.join(listed_links)}",
        "see what makes them, and remove it if nobody needs it; those that stay end by a reboot, "
        f"or by {', '.join(commands)}",
    )


def _dead_routes(remains: Remains, settings: Settings) -> Iterator[Finding]:
    for text, kind in remains.dead_routes:
        outside = ipaddress.ip_network(text, strict=False)
        for key in ("pod_cidr", "service_cidr"):
            inside = ipaddress.ip_network(getattr(settings.cluster, key))
            if inside.version != outside.version or not inside.overlaps(outside):
                continue
            if key == "pod_cidr" and outside.prefixlen < inside.prefixlen:
                continue  # flannel's routes are narrower, and come first
            yield (
                f"the kernel drops packets to {outside} (a route of type {kind}), which is in "
                f"cluster.{key} {inside}",
                f"if nobody needs that route: `ip route delete {kind} {outside}` there; else "
                f"choose another cluster.{key}",
            )
