"""Judges which versions of Kubernetes may run together, and which may follow which.

Sources: kubernetes.io, "Version Skew Policy" and "Upgrading kubeadm clusters"; kubeadm's
cmd/kubeadm/app/constants and app/phases/upgrade/policy.go; etcd.io, "How to prevent a common
failure when upgrading etcd v3.5 to v3.6".
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Literal

from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.support import Source
from gpuboot.config.versions import parse

Step = Literal["none", "patch", "minor", "refuse"]

SOURCE = Source(date(2026, 10, 27), "k8s.io/kubernetes v1.37.2, and the pages named above")
# minor releases that a kubelet may be older than an API server
KUBELET_BEHIND = 3
# Kubernetes minor -> etcd and CoreDNS of the kubeadm of its first release; patch releases may bring
# newer patch releases of them (constants.go, DefaultEtcdVersion and CoreDNSVersion)
BROUGHT = {
    34: ("3.6.4-0", "v1.12.1"),
    35: ("3.6.6-0", "v1.13.1"),
    36: ("3.6.8-0", "v1.14.2"),
    37: ("3.7.0-0", "v1.14.6"),
}
# the first etcd 3.5 whose members may be followed by etcd 3.6
_ETCD_BEFORE_3_6 = (3, 5, 20)


def upgrade_step(server: str, target: str) -> Step:
    """What it takes to bring the control plane from version `server` to `target`.

    `refuse`: it would go back, or skip a minor release.
    """
    now, desired = parse(server), parse(target)
    if now == desired:
        return "none"
    if desired < now or desired[0] != now[0] or desired[1] > now[1] + 1:
        return "refuse"
    return "minor" if desired[1] > now[1] else "patch"


def planned_step(cluster: ClusterState, target: str) -> Step:
    """What it takes for the control plane whose API server is oldest."""
    oldest = min(api_servers(cluster).values(), key=_release)
    return upgrade_step(oldest, target) if _release(oldest) else "none"


def api_servers(cluster: ClusterState) -> Mapping[str, str]:
    """Version of each API server, by node; of the one that answered where no pod tells."""
    known_versions = {
        name: version for name, version in cluster.api_servers.items() if _release(version)
    }
    return known_versions or {"": cluster.server}


def too_early(cluster: ClusterState, target: str, worker: bool) -> str:
    """Why a node may not be upgraded to a version yet; "" when it may.

    The leader's control plane comes first, as kubeadm's record tells; + worker: then all others'.
    """
    if cluster.error or cluster.recorded != target:
        return cluster.error or f"it is of {cluster.recorded}"
    behind = [
        f"the API server of {name} is {version}"
        for name, version in sorted(api_servers(cluster).items())
        if worker and name and parse(version) < parse(target)
    ]
    return ", ".join(behind)


def problems(nodes: Iterable[Node], target: str, cluster: ClusterState) -> list[Problem]:
    """Why this cluster cannot be brought to a version, each with what to do instead.

    + nodes: of the inventory
    + target: version without its v
    """
    hosts = {node.name: node.host for node in nodes}
    servers = {name: version for name, version in api_servers(cluster).items() if version}
    problems = [*_control_plane(servers, target), *_etcd(cluster.etcd, target)]
    if problems:
        return problems
    return [*_newer_kubelets(hosts, target, cluster), *_old_kubelets(hosts, target, cluster)]


def _control_plane(servers: Mapping[str, str], target: str) -> Iterator[Problem]:
    """The newest API server must not go back, the oldest not skip a minor release."""
    newest = max(servers.values(), key=parse, default=target)
    oldest = min(servers.values(), key=parse, default=target)
    requirement = f"the version lock asks for {target}"
    if parse(newest) > parse(target):
        yield Problem(
            "",
            f"the cluster runs Kubernetes {newest}{_node_suffix(servers, newest)}, {requirement}: "
            "a control plane cannot go back to an earlier release",
            f"set versions.kubernetes to {newest} or newer",
        )
    elif upgrade_step(oldest, target) == "refuse":
        following = f"1.{parse(oldest)[1] + 1}"
        yield Problem(
            "",
            f"the cluster runs Kubernetes {oldest}{_node_suffix(servers, oldest)}, {requirement}: "
            f"an upgrade may not skip {following}",
            f"set versions.kubernetes to the newest release of {following} and run, then to the "
            "minor release after it, until you are there",
        )


def _node_suffix(servers: Mapping[str, str], version: str) -> str:
    """The words " on NODES" for nodes that run this version; "" where all run the same."""
    names = sorted(name for name, running in servers.items() if running == version and name)
    return "" if len(set(servers.values())) == 1 else f" on {', '.join(names)}"


def _etcd(members: Mapping[str, str], target: str) -> Iterator[Problem]:
    """Members must not go back, and leave etcd 3.5 only from a patch release that is fit for it."""
    brought = BROUGHT.get(parse(target)[1])
    for name, version in sorted(members.items()):
        running = _release(version)
        if brought is None or not running:
            continue
        coming = _release(brought[0])
        if running[:2] > coming[:2]:
            yield Problem(
                "",
                f"etcd of {name} is {version}, and kubeadm {target} brings {brought[0]}: etcd "
                "cannot go back to an earlier minor release",
                "set versions.kubernetes to a release whose kubeadm brings that etcd",
            )
        elif running < _ETCD_BEFORE_3_6 and coming >= (3, 6):
            needed = ".".join(map(str, _ETCD_BEFORE_3_6))
            yield Problem(
                "",
                f"etcd of {name} is {version}, and kubeadm {target} brings {brought[0]}, which "
                f"may only follow {needed} or newer",
                "set versions.kubernetes to the newest patch release of the minor that runs now "
                "and run: its kubeadm brings a newer etcd",
            )


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version; () for a tag that is none, as a digest or `latest`."""
    try:
        return parse(version)
    except ValueError:
        return ()


def _newer_kubelets(
    hosts: Mapping[str, str], target: str, cluster: ClusterState
) -> Iterator[Problem]:
    """A kubelet of ours that would have to be downgraded."""
    for node in cluster.nodes:
        if node.name in hosts and node.kubelet and parse(node.kubelet) > parse(target):
            yield Problem(
                hosts[node.name],
                f"its kubelet is {node.kubelet}, the version lock asks for {target}: a kubelet is "
                "not downgraded in a living node",
                f"set versions.kubernetes to {node.kubelet} or newer, or take the node out of the "
                "cluster and let it join again: pyinfra INVENTORY deploys/remove.py --data "
                f"gpuboot_remove={node.name}, then run again",
            )


def _old_kubelets(
    hosts: Mapping[str, str], target: str, cluster: ClusterState
) -> Iterator[Problem]:
    """A kubelet that the new API servers do not work with: they come before the kubelets."""
    lowest = parse(target)[1] - KUBELET_BEHIND
    for node in cluster.nodes:
        if node.kubelet and parse(node.kubelet)[1] < lowest:
            remedy = (
                f"set versions.kubernetes to {max(api_servers(cluster).values(), key=parse)} and "
                "run, which upgrades its kubelet; then go on"
                if node.name in hosts
                else f"upgrade its kubelet by hand (it is not in the inventory), or remove it: "
                f"kubectl delete node {node.name}"
            )
            yield Problem(
                hosts.get(node.name, ""),
                f"node {node.name} runs kubelet {node.kubelet}; API servers of {target} work with "
                f"kubelets from 1.{lowest}",
                remedy,
            )


def differences(cluster: ClusterState, target: str) -> list[tuple[str, str, str]]:
    """What an upgrade of the control plane brings besides Kubernetes: name, now, then.

    Nothing where it is not known, or the same.
    """
    etcd, coredns = BROUGHT.get(parse(target)[1], ("", ""))
    now = {"etcd": min(cluster.etcd.values(), default=""), "CoreDNS": cluster.coredns}
    target_versions = {"etcd": etcd, "CoreDNS": coredns}
    return [
        (name, now[name], target_versions[name])
        for name in now
        if now[name]
        and target_versions[name]
        and _release(now[name]) < _release(target_versions[name])
    ]
