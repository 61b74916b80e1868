"""A newer kubelet on a node of a living cluster, while the node takes no new pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import host

from deploys.engine import remote
from deploys.engine.commands import Commands, executing
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.etcd.members import wait_for_etcd
from deploys.parts.kubeadm import upgrade_operations as kubeadm_upgrade
from deploys.parts.kubeadm.kubeadm_steps import marker
from deploys.parts.kubeadm.operations import note_kubelet
from deploys.parts.packages import operations as package_operations
from gpuboot.cluster import version_skew
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.node_upgrade import mismatched
from gpuboot.hosts.platforms import PackageManager

# a newer kubelet may make the static pods of its control plane anew, seconds after it is Ready
_STEADY_S = 15


@dataclass(frozen=True)
class KubeletPart:
    """The kubelet that a node is to run, with what comes with it.

    + version: of Kubernetes, without its v; packages: with the patterns of their versions
    + control_plane: kubeadm has upgraded the node before, with its control plane
    + ignore: checks of kubeadm that are passed over
    """

    version: str
    packages: Mapping[str, str]
    control_plane: bool = False
    ignore: Sequence[str] = ()


def missing(part: KubeletPart, state: KubeadmState) -> dict[str, str]:
    """Packages that are not installed at their version."""
    other_packages = {name: pattern for name, pattern in part.packages.items() if name != "kubeadm"}
    return mismatched(other_packages if part.control_plane else part.packages, state.packages)


def is_unfinished(part: KubeletPart, state: KubeadmState) -> bool:
    """Whether an upgrade of the kubelet began and did not end, or is left after kubeadm's."""
    return "kubelet" in state.started or (not part.control_plane and "upgrade" in state.started)


def is_minor(part: KubeletPart, node: str, leader: str, state: KubeadmState) -> bool:
    """Whether the release is a newer minor one than the kubelet that runs."""
    running = _running(node, leader, state)
    return bool(running) and version_skew.upgrade_step(running, part.version) == "minor"


def _running(node: str, leader: str, state: KubeadmState) -> str:
    """Version of the kubelet that runs; that of its package until the run executes."""
    if executing():
        target = host.state.inventory.get_host(leader)
        cluster = remote.read_fact(target, Cluster, kubeconfig=ADMIN_CONF)
        return next((item.kubelet for item in cluster.nodes if item.name == node), "")
    return state.packages.get("kubelet", "")


def installed(
    part: KubeletPart, node: str, state: KubeadmState, manager: PackageManager
) -> Commands:
    """The packages, and the kubelet restarted; `ended` follows when the node is Ready."""
    yield StringCommand(f"mkdir -p /etc/gpuboot && touch {marker('kubelet')}")
    if not part.control_plane:
        command = kubeadm_upgrade.UPGRADE_NODE
        yield from kubeadm_upgrade.by_kubeadm(
            node, part.version, part.packages, manager, command, part.ignore
        )
    other_packages = {name: version for name, version in part.packages.items() if name != "kubeadm"}
    yield from package_operations.installed._inner(other_packages, manager, hold=True)
    if kubelet_digest := state.kubelet_config:
        yield StringCommand(note_kubelet(kubelet_digest))  # kubeadm has written its file again
    yield StringCommand("systemctl daemon-reload && systemctl restart kubelet")


def finish(control_planes: Sequence[str]) -> Commands:
    """The mark taken away, once etcd has answered for a while where this is a control plane.

    + control_planes: inventory names of all, if this host is one
    """
    if control_planes:
        yield FunctionCommand(wait_for_etcd, (list(control_planes), _STEADY_S), {})
    # workers whose upgrade an earlier version of gpuboot began have the other mark
    yield StringCommand(f"rm -f {marker('kubelet')} {marker('upgrade')}")
