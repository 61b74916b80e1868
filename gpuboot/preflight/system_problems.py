"""Preflight of what a kernel or a package manager refuses whatever is asked of it.

Control groups: `cgroupsV2` of kubernetes/system-validators, which kubeadm asks; cpuset and pids
among them. kernel.modules_disabled: the kernel's Documentation/admin-guide/sysctl/kernel.rst.
"""

from collections.abc import Iterator

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState

_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")


def problems(node: Node, state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """Cause and remedy of each refusal that a run would meet halfway."""
    controllers = state.cgroup_controllers.split()
    missing = [name for name in _CONTROLLERS if name not in controllers]
    is_checked = not {"SystemVerification", "all"} & set(settings.cluster.ignore_preflight_errors)
    if controllers and missing and is_checked and node.role != "docker":
        yield (
            f"its kernel has no control groups for {', '.join(missing)}, without which kubeadm "
            "refuses the machine",
            "take cgroup_disable= out of the kernel's command line (/proc/cmdline; "
            "/etc/default/grub, then `update-grub`) and reboot; where it is not there, boot the "
            "distribution's own kernel, or give the container these controllers",
        )
    if state.sysctls.get("kernel.modules_disabled") == "1" and not state.kubeconfigs:
        yield (
            "its kernel loads no module any more (kernel.modules_disabled = 1), be it of the "
            "driver or of the network",
            "find what sets it (`grep -rn modules_disabled /etc/sysctl.conf /etc/sysctl.d "
            "/etc/systemd /etc/rc.local`), take it out, and reboot: nothing else takes it back",
        )
    for override in state.statoverrides:
        kind, name, path = (*override.split(" ", 2), "", "")[:3]
        yield (
            f"dpkg installs nothing: /var/lib/dpkg/statoverride names the {kind} {name}, which "
            "is gone",
            f"run `dpkg-statoverride --remove {path}` there",
        )
