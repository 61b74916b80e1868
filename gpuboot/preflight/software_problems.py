"""Preflight of programs beside the packages, of snaps, and of machines that are containers."""

from collections.abc import Iterable, Iterator, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState

_ROOT_FOLDERS = ("/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/")
# found on PATH before the package's, by our commands or by containerd, which looks for runc so
_OF_NODES = ("kubeadm", "kubectl", "crictl", "ctr", "containerd-shim-runc-v2", "runc")
_OF_DOCKER = ("docker", "containerd-shim-runc-v2", "runc")
_OF_GPUS = ("nvidia-ctk", "nvidia-container-runtime")
_CLUSTER_SNAPS = ("kubelet", "kubeadm", "kube-apiserver", "kube-proxy", "k8s")


def problems(node: Node, state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """Cause and remedy of what would run instead of the packages' programs, or beside them."""
    docker = node.role == "docker"
    software = state.software
    for unit in ("containerd", "docker") if docker else ("containerd", "kubelet"):
        program, file = software.units.get(unit, ("", ""))
        if program and not program.startswith(_ROOT_FOLDERS):
            yield (
                f"{unit}.service starts {program} ({file}), not the program of its package",
                f"run there once nothing needs it: `systemctl disable --now {unit}`, `rm {file}`, "
                f"`systemctl daemon-reload`, and remove {program}",
            )
        service = state.units.get(unit)
        if service and service.enabled == "masked":
            yield f"{unit}.service is masked", f"run `systemctl unmask {unit}` there"
    names = [*(_OF_DOCKER if docker else _OF_NODES), *(_OF_GPUS if node.gpus else ())]
    shadows = [software.shadows[name] for name in names if name in software.shadows]
    if shadows:
        yield (
            f"{', '.join(shadows)} would be used instead of the packages' programs",
            f"run `rm {' '.join(shadows)}` there once nothing needs them",
        )
    for snap in software.snaps:
        if snap in _CLUSTER_SNAPS and not docker:
            yield (
                f"parts of another Kubernetes are there: the snap {snap}",
                f"run `snap remove --purge {snap}` there",
            )
        elif snap == "docker" and docker:
            yield (
                "Docker is there as a snap, which has the socket that Docker's packages need",
                "run `snap remove docker` there; its containers, images and volumes go with it",
            )
    yield from _container(node, state, settings)


def warnings(nodes: Iterable[Node], states: Mapping[str, NodeState]) -> list[str]:
    """A line about Docker's snap on nodes of a cluster."""
    hosts = [
        node.host
        for node in nodes
        if node.role != "docker"
        and node.host in states
        and "docker" in states[node.host].software.snaps
    ]
    if not hosts:
        return []
    return [
        f"{', '.join(hosts)}: Docker runs there as a snap, with a containerd of its own, which "
        "gpuboot leaves alone; remedy: none, unless its containers use GPUs that pods are to have"
    ]


def _container(node: Node, state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """What a container (LXC, LXD, nspawn, Docker) lacks; one with all of it is as good."""
    lacks = set(state.software.lacks)
    if not (node.gpus and settings.driver.enabled):
        lacks.discard("modules")
    reasons = {
        "root": "its root is not the machine's (user namespace)",
        "kmsg": "/dev/kmsg is missing, which the kubelet reads",
        "sysctl": "/proc/sys is read-only",
        "modules": "it may not load kernel modules, as the driver needs",
    }
    if node.role == "docker":
        lacks.discard("kmsg")
    if lacks:
        causes = "; ".join(text for name, text in reasons.items() if name in lacks)
        yield (
            f"it is a container ({state.container or 'of unknown kind'}): {causes}",
            "use the machine itself or a virtual machine; or give the container what a node needs "
            "(LXD: security.privileged=true and security.nesting=true, /dev/kmsg as a unix-char "
            'device, raw.lxc "lxc.apparmor.profile=unconfined", "lxc.cap.drop=", '
            '"lxc.mount.auto=proc:rw sys:rw cgroup:rw")',
        )
