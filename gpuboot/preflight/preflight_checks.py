"""Preflight: everything that is wrong with the machines, before anything is touched."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts import dcgm_engine, gpu_choice, gpu_names, platforms, sharing_checks
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.platforms import Platform
from gpuboot.preflight import (
    boot_problems,
    driver_problems,
    environment_problems,
    firewall,
    folder_problems,
    kubelet_problems,
    network_problems,
    ports,
    remains_problems,
    software_problems,
    system_problems,
)
from gpuboot.preflight import platform as platform_checks

Finding = tuple[str, str]  # cause, remedy
Check = Callable[["Subject"], Iterator[Finding]]

_MIN_CPUS, _MIN_MEMORY_MIB = 2, 3500  # what kubeadm asks for, and room for what runs on a node
_KUBERNETES_UNITS = {
    "k3s": "k3s-uninstall.sh",
    "k3s-agent": "k3s-agent-uninstall.sh",
    "rke2-server": "rke2-uninstall.sh",
    "rke2-agent": "rke2-uninstall.sh",
    "k0scontroller": "k0s reset",
    "k0sworker": "k0s reset",
}


@dataclass(frozen=True)
class Subject:
    """A machine and what it must become."""

    node: Node
    state: NodeState
    settings: Settings
    lock: Lock


def evaluate(
    nodes: Sequence[Node],
    states: Mapping[str, NodeState],
    settings: Settings,
    lock: Lock,
    checks: Sequence[Check] | None = None,
) -> list[Problem]:
    """All problems of all machines that were read; empty when the run may start.

    + checks: default: those of a cluster's machines, `CHECKS`

    A machine that gpuboot has set up before passes: its own kubelet, ports and cluster are right.
    """
    problems = []
    for node in nodes:
        if node.host not in states:
            continue
        subject = Subject(node, states[node.host], settings, lock)
        for check in CHECKS if checks is None else checks:
            of_check = [Problem(node.host, cause, remedy) for cause, remedy in check(subject)]
            problems += of_check
            if of_check and check is _root:
                break  # most of what others see without root is wrong
    if checks is None:
        problems += firewall.problems(nodes, states, settings)
    return problems + _duplicates(nodes, states) + _other_clusters(nodes, states)


def _root(subject: Subject) -> Iterator[Finding]:
    if subject.state.uid != 0:
        yield (
            f"commands run as uid {subject.state.uid}, not as root",
            "set _sudo = True in group_data",
        )


def _identity(subject: Subject) -> Iterator[Finding]:
    if subject.state.arch not in platforms.ARCHITECTURES:
        yield f"its architecture is {subject.state.arch}", "use x86_64 or aarch64 machines"
    if platforms.find(subject.state) is None:
        supported = ", ".join(platform.name for platform in platforms.PLATFORMS)
        yield (
            f"runs {subject.state.os_name or 'an unknown system'}",
            (f"install one of: {supported} ({platforms.SOURCE.age()})"),
        )


def _size(subject: Subject) -> Iterator[Finding]:
    state = subject.state
    for actual, needed, unit in (
        (state.cpus, _MIN_CPUS, "CPUs"),
        (state.memory_mib, _MIN_MEMORY_MIB, "MiB of memory"),
    ):
        if actual < needed:
            yield f"has {actual} {unit}; {needed} are needed", "use a larger machine"


def _kernel(subject: Subject) -> Iterator[Finding]:
    missing = {"overlay", "br_netfilter"} - subject.state.kernel_features
    if missing:
        yield (
            f"its kernel {subject.state.kernel} lacks {', '.join(sorted(missing))}",
            "install the distribution's full kernel (linux-modules-extra on cloud images)",
        )
    if subject.state.cgroup == 1 and subject.settings.cluster.kubelet.get("failCgroupV1", True):
        yield (
            "it uses cgroup v1, which the kubelet refuses",
            "boot with systemd.unified_cgroup_hierarchy=1, or set "
            'cluster.kubelet = {"failCgroupV1": False}',
        )
    if subject.settings.cluster.proxy_mode == "nftables" and _kernel_version(subject.state) < (
        5,
        13,
    ):
        yield (
            f"kernel {subject.state.kernel} is too old for kube-proxy's nftables mode (5.13)",
            'use a newer kernel, or set cluster.proxy_mode = "iptables"',
        )


def _kernel_version(state: NodeState) -> tuple[int, int]:
    major, minor = state.kernel.split(".")[:2]
    return int(major), int("".join(char for char in minor if char.isdigit()) or 0)


def _clock(subject: Subject) -> Iterator[Finding]:
    if abs(subject.state.clock_skew_s) > subject.settings.preflight.max_clock_skew_s:
        direction = "ahead of" if subject.state.clock_skew_s > 0 else "behind"
        yield (
            f"its clock is {abs(subject.state.clock_skew_s):.0f} s {direction} this machine's",
            "set the clock (timedatectl set-ntp true) on whichever of the two is wrong",
        )


def _packages(subject: Subject) -> Iterator[Finding]:
    state = subject.state
    if state.package_lock_holders:
        yield (
            f"its package manager is still in use by {', '.join(state.package_lock_holders)}",
            "let it finish or stop it",
        )
    if state.cloud_init == "running":
        yield "cloud-init is still running", "look at /var/log/cloud-init-output.log there"


def replaced(
    state: NodeState, platform: Platform, names: Sequence[str], replaced_by: str
) -> Iterator[Finding]:
    """The distribution's packages that ours replace. + replaced_by: which ones do, and a verb"""
    for name in names:
        if name in state.packages:
            yield (
                f"the distribution's package {name} is installed; {replaced_by} it and its "
                "containers stop",
                f"run `{platform.remove_command} {name}` there once nothing needs it",
            )


def _runtimes(subject: Subject) -> Iterator[Finding]:
    if platform := platforms.find(subject.state):
        names = platform.distribution_runtimes
        yield from replaced(subject.state, platform, names, "Docker's containerd.io replaces")
    if subject.state.is_active("crio"):
        yield "CRI-O runs there, a second container runtime", "remove cri-o from the machine"


def _kubernetes(subject: Subject) -> Iterator[Finding]:
    for unit, uninstall in _KUBERNETES_UNITS.items():
        if subject.state.is_active(unit) or unit in subject.state.foreign:
            yield f"another Kubernetes runs there: {unit}", f"remove it with `{uninstall}`"
        elif unit in subject.state.units and subject.state.units[unit].enabled == "enabled":
            yield (
                f"another Kubernetes starts at boot there: {unit}",
                f"remove it with `{uninstall}`",
            )
    if "microk8s" in subject.state.foreign:
        yield "another Kubernetes is there: microk8s", "run `snap remove --purge microk8s`"


def _gpus(subject: Subject) -> Iterator[Finding]:
    on_bus = len(subject.state.gpus)
    ignored_gpus = gpu_choice.ignored(subject.state)
    aside = f" (left alone: {'; '.join(ignored_gpus)})" if ignored_gpus else ""
    if unmatched := gpu_choice.unmatched(subject.node, subject.state):
        all_gpus = "; ".join(gpu_choice.describe(gpu) for gpu in subject.state.all_gpus) or "none"
        yield (
            f"cluster_gpus names {', '.join(unmatched)}, and none of its GPUs is that: {all_gpus}",
            "correct cluster_gpus in the host's data",
        )
    elif on_bus < subject.node.gpus:
        yield (
            f"the inventory promises {subject.node.gpus} GPUs, the PCI bus shows {on_bus}{aside}",
            "look for cards that are off the bus (lspci -d 10de:, dmesg), or correct gpus",
        )
    elif on_bus > subject.node.gpus and not gpu_choice.unknown_uuids(subject.node, subject.state):
        models = gpu_names.summary(subject.state.gpu_ids)
        yield (
            f"the PCI bus shows {on_bus} GPUs ({models}), the inventory promises "
            f"{subject.node.gpus}{aside}",
            f"set gpus = {on_bus} in the host's data; or name those of the cluster in "
            "cluster_gpus, by UUID, PCI address or model, if others are not for pods",
        )


# what any machine has to be, whatever runs on it
MACHINE: tuple[Check, ...] = (
    _root,
    _identity,
    _size,
    _clock,
    _packages,
    _gpus,
    lambda target: driver_problems.problems(
        target.node, target.state, target.settings, target.lock
    ),
    lambda target: dcgm_engine.problems(target.node, target.state, target.settings, target.lock),
    lambda target: platform_checks.problems(target.node, target.state, target.settings),
    lambda target: folder_problems.problems(target.node, target.state, target.settings),
    lambda target: software_problems.problems(target.node, target.state, target.settings),
    lambda target: system_problems.problems(target.node, target.state, target.settings),
    lambda target: sharing_checks.of_host(target.node, target.state, target.settings),
)
CHECKS: tuple[Check, ...] = (
    *MACHINE,
    _kernel,
    _runtimes,
    _kubernetes,
    lambda target: environment_problems.problems(target.node, target.state, target.settings),
    lambda target: network_problems.address(target.node, target.state),
    lambda target: ports.problems(target.node, target.state, target.settings),
    lambda target: ports.flannel(target.state, target.settings),
    lambda target: remains_problems.problems(target.node, target.state, target.settings),
    lambda target: network_problems.overlaps(target.state, target.settings),
    lambda target: boot_problems.problems(target.state, target.settings),
    lambda target: kubelet_problems.problems(target.state, target.lock),
)


def _duplicates(nodes: Sequence[Node], states: Mapping[str, NodeState]) -> list[Problem]:
    """Machines that are one and the same, or clones: equal machine id, address or name."""
    problems = []
    for attribute, remedy in (
        ("machine_id", "give each clone its own: rm /etc/machine-id; systemd-machine-id-setup"),
        ("boot_id", "two inventory names lead to one machine: correct their addresses"),
    ):
        owners: dict[str, list[str]] = defaultdict(list)
        for node in nodes:
            if node.host in states and (value := getattr(states[node.host], attribute)):
                owners[value].append(node.host)
        problems += [
            Problem("", f"{', '.join(hosts)} have the same {attribute.replace('_', ' ')}", remedy)
            for hosts in owners.values()
            if len(hosts) > 1
        ]
    return problems


def _other_clusters(nodes: Sequence[Node], states: Mapping[str, NodeState]) -> list[Problem]:
    """Nodes that belong to a cluster that is not the leader's."""
    leader = next((node.host for node in nodes if node.leader), "")
    if leader not in states:
        return []
    # a cluster that gpuboot did not make is told of by itself
    clusters = {
        host: "" if state.remains.cluster else state.cluster_ca for host, state in states.items()
    }
    leader_cluster = clusters[leader]
    members = [node.host for node in nodes if clusters.get(node.host)]
    if members and not leader_cluster:
        return [
            Problem(
                leader,
                f"it leads the inventory and is in no cluster; in one are {', '.join(members)}",
                "name the cluster's first control-plane node first in control_plane; or take "
                "them out of that cluster (kubectl drain, kubeadm reset), then run again",
            )
        ]
    return [
        Problem(
            node.host,
            "it belongs to another Kubernetes cluster already",
            "take it out of that cluster (kubectl drain, kubeadm reset), then run again",
        )
        for node in nodes
        if clusters.get(node.host, "") not in ("", leader_cluster)
    ]
