"""Preflight of how a node's kubelet starts: files of earlier installations that change that.

kubeadm's package starts it with four variables, the last of which, KUBELET_EXTRA_ARGS, is the
administrator's: it comes from /etc/default/kubelet, on systems of rpm from /etc/sysconfig/kubelet
(kubernetes/release, 10-kubeadm.conf). A flag that is unknown ends the kubelet.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from gpuboot.cluster.kubelet_in_force import flag_of
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts import platforms
from gpuboot.hosts.boot import ConfigLine
from gpuboot.hosts.node_state import NodeState

# flags that no supported kubelet has any more; kubelet 1.36.3 refuses each of them
_REMOVED_FLAGS = frozenset(
    (
        *("allow-privileged", "cadvisor-port", "cni-bin-dir", "cni-cache-dir", "cni-conf-dir"),
        *("container-runtime", "containerized", "docker-endpoint", "dynamic-config-dir"),
        *("experimental-fail-swap-on", "image-pull-progress-deadline"),
        *("keep-terminated-pod-volumes", "master-service-namespace", "network-plugin"),
        *("network-plugin-mtu", "non-masquerade-cidr", "redirect-container-streaming"),
        *("register-schedulable", "require-kubeconfig"),
    )
)
# cAdvisor's, of which --housekeeping-interval alone is left (globalflags_linux.go of 1.37)
_CADVISOR_FLAGS = (
    *("application-metrics-count-limit", "boot-id-file", "container-hints", "containerd"),
    *("containerd-namespace", "enable-load-reader", "event-storage-age-limit"),
    *("event-storage-event-limit", "global-housekeeping-interval", "log-cadvisor-usage"),
    *("machine-id-file", "storage-driver-buffer-duration", "storage-driver-db"),
    *("storage-driver-host", "storage-driver-password", "storage-driver-secure"),
    *("storage-driver-table", "storage-driver-user"),
)
# the Kubernetes minor
_GONE_SINCE = {
    "cloud-config": 34,
    "pod-infra-container-image": 35,
    **dict.fromkeys(_CADVISOR_FLAGS, 37),
}
# flags that stand for what gpuboot gives the kubelet, beside the fields of cluster.kubelet
_MANAGED_FLAGS = {
    "node-ip": "the host's address in the inventory",
    "hostname-override": "node_name in the inventory",
    "cgroup-driver": "systemd, as containerd has it",
    "fail-swap-on": "cluster.fail_swap_on",
    "fail-cgroupv1": "cluster.kubelet.failCgroupV1",
    "container-runtime-endpoint": "containerd's socket",
}
# fields of KubeletConfiguration that are often given as flags
_FIELDS = ("maxPods", "resolvConf", "clusterDNS", "clusterDomain", "featureGates", "evictionHard")
_ARGUMENTS = ("KUBELET_KUBECONFIG_ARGS", "KUBELET_CONFIG_ARGS", "KUBELET_KUBEADM_ARGS")
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9_-]*)")  # kubelets take - and _ for the same
_OTHER_FAMILY = {"apt": "/etc/sysconfig/kubelet", "dnf": "/etc/default/kubelet"}


def problems(state: NodeState, lock: Lock) -> Iterator[tuple[str, str]]:
    """Cause and remedy where the kubelet would not start, or without kubeadm's configuration."""
    minor = int(lock.kubernetes.minor.partition(".")[2])
    for line in lines(state):
        for flag in _flags(line):
            if flag in _REMOVED_FLAGS or _GONE_SINCE.get(flag, minor + 1) <= minor:
                yield (
                    f"{line.place} gives the kubelet --{flag}, which Kubernetes "
                    f"{lock.kubernetes.minor} does not have: the kubelet would not start",
                    f"take --{flag} out of {line.file}",
                )
        _, _, command = line.text.partition("ExecStart=")
        missing = [name for name in _ARGUMENTS if name not in command]
        if command and missing:
            yield (
                f"{line.place} starts the kubelet by a command of its own (`ExecStart={command}`), "
                f"without {' and '.join(f'${name}' for name in missing)}, by which kubeadm "
                "configures it",
                f"remove that file ({line.file}), then run `systemctl daemon-reload`; own flags "
                "have their place in cluster.kubelet",
            )


def warnings(
    nodes: Iterable[Node], states: Mapping[str, NodeState], settings: Settings
) -> list[str]:
    """A line for each flag that comes after what gpuboot sets, and wins."""
    fields = {flag_of(name): f"cluster.kubelet.{name}" for name in _FIELDS}
    fields |= {flag_of(name): f"cluster.kubelet.{name}" for name in settings.cluster.kubelet}
    places = fields | _MANAGED_FLAGS
    return [
        f"[{node.host}] {line.place} gives the kubelet --{flag}, which wins over {places[flag]}; "
        f"remedy: take it out of {line.file}, and set it there"
        for node in nodes
        if node.host in states
        for line in lines(states[node.host])
        for flag in _flags(line)
        if flag in places
    ]


def lines(state: NodeState) -> list[ConfigLine]:
    """The lines that count on the host's platform: each family has its own file for flags."""
    platform = platforms.find(state)
    foreign_file = _OTHER_FAMILY[platform.package_manager] if platform else ""
    return [line for line in state.boot.kubelet if line.file != foreign_file]


def _flags(line: ConfigLine) -> list[str]:
    return list(dict.fromkeys(flag.replace("_", "-") for flag in _FLAG.findall(line.text)))
