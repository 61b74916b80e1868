"""Where nodes reach the API: a name that each node resolves itself, unless the site has its own.

A cluster is made with the name `gpuboot-api`, also where it has one control plane, so that more can
join later. A control plane resolves it to itself. Another node resolves it to the one control
plane, or, where there are several, to a load balancer of its own (haproxy on 127.0.0.1), so that no
node depends on any one of them; or to the virtual address, where the site has one
(`gpuboot.cluster.virtual_address`).
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from gpuboot.cluster.kubeadm import API_PORT, api_name_in_force, balanced
from gpuboot.config.inventory import API_NAME, Node, is_address
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Cluster, Settings
from gpuboot.hosts.node_state import NodeState
from gpuboot.templates import render

LOCAL = "127.0.0.1"
_API_ENDPOINT = f"{API_NAME}:{API_PORT}"
# Each check is a TLS handshake for each control plane: the more nodes check, the less often.
_CHECK_S = 2
_NODES_PER_CHECK_S = 100


def decided(cluster: Cluster, server: str) -> Cluster:
    """The settings with the endpoint that the cluster has, or will be made with.

    + server: URL of the API server in the leader's admin.conf; "" where there is no cluster yet

    A cluster that was made with the address of its control plane keeps it: no endpoint then.
    """
    if cluster.endpoint or is_address(urlsplit(server).hostname or ""):
        return cluster
    return cluster.model_copy(update={"endpoint": _API_ENDPOINT})


def is_ours(cluster: Cluster) -> bool:
    """Whether nodes resolve the name by what gpuboot writes. + cluster: as `decided` has it"""
    return api_name_in_force(cluster)


def control_planes(nodes: Sequence[Node]) -> list[Node]:
    """The nodes that run an API server."""
    return [node for node in nodes if node.role == "control_plane"]


def address(cluster: Cluster, node: Node, nodes: Sequence[Node], member: bool) -> str:
    """What a node resolves the name to.

    + cluster: as `decided` has it
    + member: it is a control plane with an API server; one that is about to join asks the leader's
    """
    if node.leader or (member and node.role == "control_plane"):
        return node.address
    if node.role == "worker" and cluster.virtual_ip:
        return cluster.virtual_ip
    if node.role == "worker" and len(control_planes(nodes)) > 1:
        return LOCAL
    return next(item.address for item in nodes if item.leader)


def load_balancer(nodes: Sequence[Node]) -> str:
    """haproxy's configuration on each node that has no API server."""
    clients = len(nodes) - len(control_planes(nodes))
    return render(
        "kubernetes/haproxy.cfg.j2",
        name=API_NAME,
        bind=f"{LOCAL}:{API_PORT}",
        port=API_PORT,
        control_planes=control_planes(nodes),
        check_s=max(_CHECK_S, clients // _NODES_PER_CHECK_S),
    )


def problems(
    nodes: Sequence[Node], states: Mapping[str, NodeState], settings: Settings
) -> list[Problem]:
    """What hosts have in the place of the load balancer. + states: by inventory name"""
    problems = []
    if not balanced(settings.cluster, nodes):
        return []
    for node in nodes:
        if node.host not in states or node.role == "control_plane":
            continue
        state = states[node.host]
        owner = state.ports.get(API_PORT, "haproxy")
        if state.load_balancer == "foreign":
            problems.append(
                Problem(
                    node.host,
                    "haproxy there has a configuration of its own, in whose place gpuboot would "
                    "put that of the load balancer before the API servers",
                    "move what it does elsewhere and remove /etc/haproxy/haproxy.cfg; or set "
                    "cluster.endpoint to a load balancer of your own, or cluster.virtual_ip",
                )
            )
        elif owner not in ("haproxy", "?"):
            problems.append(
                Problem(
                    node.host,
                    f"TCP port {API_PORT} is in use by {owner}; the load balancer before the API "
                    "servers (haproxy) needs it",
                    f"stop what listens there: ss -ltnp 'sport = :{API_PORT}'",
                )
            )
    return problems


def growth_refused(cluster: Cluster, nodes: Sequence[Node]) -> list[Problem]:
    """Why a cluster that lives cannot have more control planes, or a virtual address.

    + cluster: as `decided` has it

    Nothing when it can. What its nodes know of the API server is in certificates and credentials on
    each of them, and nothing but an address there makes another one of it.
    """
    if cluster.endpoint:
        return []
    lead = next(node for node in nodes if node.leader)
    cause = (
        "its cluster was made with an address instead of a name, by which all nodes know its API"
    )
    anew = (
        "make the cluster anew (pyinfra INVENTORY deploys/reset.py --data "
        "gpuboot_reset=CLUSTER), which then has a name that all control planes "
        "answer to"
    )
    problems = []
    if len(control_planes(nodes)) > 1:
        problems.append(
            Problem(
                lead.host,
                f"{cause}: no other control plane can join it",
                f"take the others out of group control_plane; or {anew}",
            )
        )
    if cluster.virtual_ip:
        problems.append(
            Problem(
                lead.host,
                f"{cause}: they would not use cluster.virtual_ip",
                "take cluster.virtual_ip out (if that address is one of your own before the "
                f"control planes, set cluster.endpoint to it); or {anew}",
            )
        )
    return problems
