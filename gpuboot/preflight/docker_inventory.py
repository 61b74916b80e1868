"""Who is who among Docker hosts: the inventory's groups `gpu_hosts` and `monitor`."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from gpuboot.config.inventory import Entry, Node, duplicates, parse_entry
from gpuboot.config.problems import Problem

GPU_HOSTS = "gpu_hosts"
MONITOR = "monitor"


def is_of_docker_hosts(groups: Collection[str]) -> bool:
    """Whether an inventory with these groups is one of Docker hosts."""
    return bool({GPU_HOSTS, MONITOR} & set(groups))


def plan(entries: Sequence[Entry]) -> tuple[tuple[Node, ...], list[Problem]]:
    """The Docker hosts of an inventory, the monitoring host first; and what is wrong.

    + entries: all hosts of the inventory, in its order

    A host may be in both groups. The nodes may only be used when there is no problem.
    """
    nodes: list[Node] = []
    problems: list[Problem] = []
    for entry in entries:
        node, entry_problems = parse_entry(entry, "docker")
        problems += entry_problems + _groups(entry, node.gpus)
        nodes.append(replace(node, monitor=MONITOR in entry.groups))
    problems += _one_monitor([node.host for node in nodes if node.monitor])
    problems += duplicates(nodes, "name", "node_name") + duplicates(nodes, "address", "address")
    return tuple(sorted(nodes, key=lambda node: not node.monitor)), problems


def _groups(entry: Entry, gpus: int) -> list[Problem]:
    groups = ", ".join(sorted(entry.groups)) or "none"
    if kubernetes := {"control_plane", "workers"} & set(entry.groups):
        cause = f"is in group {', '.join(sorted(kubernetes))} of a cluster"
        remedy = "keep Docker hosts (gpu_hosts, monitor) and a cluster in inventories of their own"
        return [Problem(entry.host, cause, remedy)]
    if not is_of_docker_hosts(entry.groups):
        cause = f"is in neither group {GPU_HOSTS} nor {MONITOR} (its groups: {groups})"
        return [Problem(entry.host, cause, f"move it to {GPU_HOSTS}, {MONITOR} or both")]
    if GPU_HOSTS in entry.groups and not gpus:
        cause = f"is in group {GPU_HOSTS} and promises no GPU"
        return [Problem(entry.host, cause, "give how many NVIDIA GPUs it has, e.g. gpus = 8")]
    if gpus and GPU_HOSTS not in entry.groups:
        cause = f"promises {gpus} GPUs and is not in group {GPU_HOSTS}"
        return [Problem(entry.host, cause, f"put it into {GPU_HOSTS} as well, or take gpus out")]
    return []


def _one_monitor(hosts: Sequence[str]) -> list[Problem]:
    if len(hosts) == 1:
        return []
    cause = (
        f"{len(hosts)} hosts are in group {MONITOR}: {', '.join(hosts)}"
        if hosts
        else f"no host is in group {MONITOR}"
    )
    remedy = f"put the one host that runs Prometheus into {MONITOR}; it may have GPUs itself"
    return [Problem("", cause, remedy)]
