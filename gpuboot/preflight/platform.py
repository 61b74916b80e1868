"""Preflight of systems with dnf (Rocky Linux, RHEL): what the site has to settle there first.

SELinux: kubernetes.io, "Installing kubeadm" (permissive mode); Docker's packages bring
container-selinux, which covers containerd and not what pods of the GPU operator and the pod network
do on the host. DKMS: NVIDIA Driver Installation Guide, "Red
Hat Enterprise Linux", which takes it from EPEL.
"""

from collections.abc import Iterable, Iterator, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts import platforms, proxy
from gpuboot.hosts.node_state import NodeState


def warnings(nodes: Iterable[Node], states: Mapping[str, NodeState]) -> list[str]:
    """A line for each system among the hosts on which nobody has run gpuboot yet."""
    hosts: dict[str, list[str]] = {}
    for node in nodes:
        platform = platforms.find(states[node.host]) if node.host in states else None
        if platform and platform.experimental:
            hosts.setdefault(platform.name, []).append(node.host)
    return [
        f"{', '.join(names)}: {platform} is experimental: nobody has run gpuboot on it yet; "
        "remedy: try it on machines that may be installed again, and tell what you find"
        for platform, names in hosts.items()
    ]


def problems(node: Node, state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """Cause and remedy of what keeps a run from going through on a system with dnf."""
    platform = platforms.find(state)
    if platform is None or platform.package_manager != "dnf":
        return
    if state.selinux_enforcing:
        yield (
            "SELinux is enforcing, which gpuboot has no policy for",
            "run `setenforce 0` and set SELINUX=permissive in /etc/selinux/config there, as "
            "kubeadm's documentation asks",
        )
    if proxy.is_set(settings.proxy) and not state.dnf_proxy:
        yield (
            "settings.proxy is set, and dnf does not know the proxy",
            "set proxy= in /etc/dnf/dnf.conf there: gpuboot leaves the settings of dnf to the site",
        )
    if node.gpus and settings.driver.enabled and state.dkms_package == "missing":
        yield (
            "no repository of dnf has DKMS, which builds the NVIDIA module",
            "enable EPEL there (`dnf install epel-release`; RHEL: docs.fedoraproject.org/epel)",
        )
