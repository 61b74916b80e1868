"""The machines as the inventory describes them, and whether they make a cluster."""

import difflib
import ipaddress
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gpuboot.config.problems import Problem

Role = Literal["control_plane", "worker", "docker"]

ROLES: Mapping[str, Role] = {"control_plane": "control_plane", "workers": "worker"}
API_NAME = "gpuboot-api"  # every node's name for the API server (`gpuboot.cluster.endpoint`)
# what a host's data may say of it, beside pyinfra's own
DATA = ("node_name", "address", "gpus", "cluster_gpus", "ssh_hostname")
# RFC 1123 subdomain: what Kubernetes takes as a node's name
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True)
class Node:
    """A machine: a node of the cluster, or a Docker host (`gpuboot.docker`).

    + host: its name in the inventory
    + name: its name in Kubernetes, and the label `node` of its series
    + address: its IP address in the cluster; "" until preflight has read the machine, when
      the inventory names none (then it is the source address of the default route)
    + role: control-plane node, worker, or a Docker host that belongs to no cluster
    + gpus: how many GPUs the inventory promises (0: none)
    + cluster_gpus: which of the machine's GPUs these are, by UUID, PCI address, PCI id or model;
      none: all that the driver supports
    + leader: the control-plane node that makes the cluster, or does in this run what is done once
      (`led`); exactly one, none of Docker hosts
    + monitor: the Docker host that runs Prometheus; exactly one, none of a cluster
    + groups: of the inventory, which it is in
    """

    host: str
    name: str
    address: str
    role: Role
    gpus: int
    leader: bool
    monitor: bool = False
    groups: tuple[str, ...] = field(default=(), compare=False)
    cluster_gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A host as it stands in the inventory, before anything is checked.

    `data` holds the keys of `DATA` where they are given; `other_keys` the names of all its other
    data.
    """

    host: str
    groups: tuple[str, ...]
    data: Mapping[str, Any]
    other_keys: tuple[str, ...] = ()


def plan(entries: Sequence[Entry], endpoint: str | None) -> tuple[tuple[Node, ...], list[Problem]]:
    """The nodes these hosts make, and everything that is wrong with them.

    + entries: all hosts of the inventory, in its order; the first control-plane node leads, as
      long as no host has been read (`led`)
    + endpoint: `settings.cluster.endpoint`

    The nodes may only be used when there is no problem.
    """
    nodes: list[Node] = []
    problems: list[Problem] = []
    for entry in entries:
        role, role_problems = _role(entry)
        node, own_problems = parse_entry(entry, role or "worker")
        problems += role_problems + own_problems
        if role is None:
            continue
        first = role == "control_plane" and not any(node.leader for node in nodes)
        nodes.append(replace(node, leader=first))
    if len(nodes) == len(entries):  # else the leader may be one of those without a role
        problems += _control_planes(nodes, endpoint)
    problems += duplicates(nodes, "name", "node_name") + duplicates(nodes, "address", "address")
    return tuple(sorted(nodes, key=lambda node: node.role != "control_plane")), problems


def led(
    nodes: Sequence[Node], members: Collection[str], led_at: Mapping[str, int] | None = None
) -> tuple[Node, ...]:
    """The nodes with the leader of a run: of the control planes in the cluster, the last that led.

    Where none of them has led, the first. A control plane that was replaced, or comes back, does
    not lead again: what the leader has beside the others would move there for nothing.

    + members: inventory names of the control planes that answer and are part of a cluster; none:
      the first control plane makes it
    + led_at: when a run that each led began to configure the cluster; 0 or missing: never
    """
    names = [node.host for node in nodes if node.role == "control_plane"]
    fit = [name for name in names if name in members] or names[:1]
    leader = max(fit, key=lambda name: (led_at or {}).get(name, 0), default="")
    return tuple(replace(node, leader=node.host == leader) for node in nodes)


def parse_entry(entry: Entry, role: Role) -> tuple[Node, list[Problem]]:
    """The node that a host's data describes, leading nothing; and what is wrong with the data."""
    gpus, gpu_problems = _gpus(entry)
    cluster_gpus, choice_problems = _cluster_gpus(entry, gpus)
    name, address, name_problems = _names(entry)
    node = Node(
        entry.host, name, address, role, gpus,
        leader=False, groups=entry.groups, cluster_gpus=cluster_gpus,
    )  # fmt: skip
    return node, gpu_problems + choice_problems + name_problems + _misspelt(entry)


def _misspelt(entry: Entry) -> list[Problem]:
    """Problems with data that nothing reads and whose name is nearly one of ours."""
    problems = []
    for name in entry.other_keys:
        near = difflib.get_close_matches(name, DATA, n=1, cutoff=0.8)
        if near and near[0] not in entry.data:
            problems.append(
                Problem(entry.host, f"its data has {name}, which nobody reads", f"write {near[0]}")
            )
    return problems


def _role(entry: Entry) -> tuple[Role | None, list[Problem]]:
    # a connector's hosts, @local for one, list their groups twice
    roles = list(dict.fromkeys(ROLES[group] for group in entry.groups if group in ROLES))
    if len(roles) == 1:
        return roles[0], []
    if roles:
        cause = "is in both groups, control_plane and workers"
        remedy = "keep it in one; a control-plane node takes workloads when there is no worker"
    else:
        group_names = ", ".join(sorted(entry.groups)) or "none"
        cause = f"is in neither group control_plane nor workers (its groups: {group_names})"
        remedy = "move it to control_plane or workers; other group names have no role"
        for group in entry.groups:
            if near := difflib.get_close_matches(group, ROLES, n=1, cutoff=0.8):
                remedy = f"call the group {near[0]} instead of {group}"
    return None, [Problem(entry.host, cause, remedy)]


def _gpus(entry: Entry) -> tuple[int, list[Problem]]:
    value = entry.data.get("gpus", 0)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value, []
    return 0, [
        Problem(
            entry.host,
            f"gpus is {value!r}, which is not a number of GPUs",
            "give how many NVIDIA GPUs the machine has, e.g. gpus = 8; leave it out for none",
        )
    ]


def _cluster_gpus(entry: Entry, gpus: int) -> tuple[tuple[str, ...], list[Problem]]:
    value = entry.data.get("cluster_gpus", ())
    if not isinstance(value, list | tuple) or not all(
        isinstance(item, str) and item.strip() for item in value
    ):
        cause = f"cluster_gpus is {value!r}, which is not a list of GPUs"
        remedy = (
            'name UUIDs, PCI addresses or models, e.g. ["GPU-5c1f…", "0000:3b:00.0", "H100"], or '
            "leave it out for all"
        )
        return (), [Problem(entry.host, cause, remedy)]
    if value and not gpus:
        cause = "cluster_gpus names GPUs, and gpus is 0"
        return (), [Problem(entry.host, cause, "set gpus to their number, or leave both out")]
    return tuple(value), []


def _names(entry: Entry) -> tuple[str, str, list[Problem]]:
    problems = []
    name = str(entry.data.get("node_name") or default_name(entry.host))
    if len(name) > 253 or not _NAME.fullmatch(name):
        problems.append(
            Problem(
                entry.host,
                f"node name {name!r} is no name Kubernetes takes (lower case, digits, - and .)",
                "set node_name in the host's data",
            )
        )
    address = entry.data.get("address")
    if address is None:
        guess = str(entry.data.get("ssh_hostname") or entry.host)
        return name, guess if is_address(guess) else "", problems
    if not is_address(str(address)):
        problems.append(
            Problem(
                entry.host,
                f"address {address!r} is not an IP address",
                "give the node's IP address in the cluster, or leave address out",
            )
        )
    return name, str(address), problems


def default_name(host: str) -> str:
    """The node name that an inventory name gives: connector prefixes go, an IP gets `node-`."""
    bare = host.rpartition("/")[2].lstrip("@").lower()
    return "node-" + re.sub(r"[.:]+", "-", bare) if is_address(bare) else bare


def is_address(text: str) -> bool:
    """Whether it is an IP address rather than a name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _control_planes(nodes: Sequence[Node], endpoint: str | None) -> list[Problem]:
    count = sum(node.role == "control_plane" for node in nodes)
    if count == 0:
        remedy = "put the host that leads the cluster into group control_plane"
        return [Problem("", "there is no control-plane node", remedy)]
    problems = [
        Problem(node.host, f"{API_NAME} is the name of all API servers", "set another node_name")
        for node in nodes
        if node.name == API_NAME and not endpoint
    ]
    name = (endpoint or "").rpartition(":")[0].strip("[]")
    for node in nodes:
        if count > 1 and name and name in (node.host, node.name, node.address):
            cause = (
                f"cluster.endpoint {endpoint} is this one machine, without which none has an API"
            )
            remedy = "name what stands for all control planes, or leave cluster.endpoint out"
            problems.append(Problem(node.host, cause, remedy))
    return problems


def warnings(nodes: Iterable[Node]) -> list[str]:
    """What a person should know of these nodes, and may have good reasons for."""
    count = sum(node.role == "control_plane" for node in nodes)
    if count == 0 or count % 2:
        return []
    return [
        f"{count} control-plane nodes: etcd needs more than half of them, so that {count - 1} bear "
        f"as many losses; remedy: use {count + 1}, or {count - 1}"
    ]


def duplicates(nodes: Iterable[Node], field: str, key: str) -> list[Problem]:
    """A problem for each value of a field that several nodes have.

    + key: what the field is called in the inventory
    """
    owners: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        if value := getattr(node, field):
            owners[value].append(node.host)
    return [
        Problem("", f"{', '.join(hosts)} have the same {field} {value}", f"give each its own {key}")
        for value, hosts in owners.items()
        if len(hosts) > 1
    ]
