"""Kernel headers: DKMS builds the NVIDIA module against them, for every kernel that is to boot.

On RHEL they are in kernel-devel, and kernel-devel-matched keeps kernel and headers at one version
(NVIDIA Driver Installation Guide, "Red Hat Enterprise Linux", Preparation).
"""

from collections.abc import Iterable, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.platforms import Platform


def running_headers(platform: Platform, state: NodeState) -> str:
    """The package with the running kernel's headers, on RHEL with its version."""
    if platform.package_manager == "apt":
        return state.headers_package or f"linux-headers-{state.kernel}"
    release, _, variant = state.kernel.partition("+")  # 5.14.0-570.el9.aarch64+64k
    return f"kernel-{f'{variant}-' if variant else ''}devel-{release}"


def problem(platform: Platform, state: NodeState) -> tuple[str, str]:
    """Cause and remedy where the running kernel's headers are missing."""
    manager, package = platform.package_manager, running_headers(platform, state)
    install = f"install {package}"
    if package.startswith(("pve-", "proxmox-")):
        install += " (Proxmox's repository pve-no-subscription or pve-enterprise has it)"
    elif offers := [name for name, offer in state.kernel_headers.items() if offer != "missing"]:
        # archives keep the headers of their present kernels alone
        image = sorted(offers)[0].replace("linux-headers-", "linux-image-")
        install = f"run `apt-get install {image}` there, reboot into the kernel that it brings"
    elif manager == "apt":
        install += ", which whoever built this kernel has (`make deb-pkg` makes it)"
    return (
        f"no kernel headers for the running kernel {state.kernel}, and {manager} has none",
        f"{install}, or boot a kernel whose headers {manager} has",
    )


def headers(platform: Platform, state: NodeState) -> list[str]:
    """Packages with the headers that a machine needs.

    The running kernel's, unless they are there by other means; and what brings the headers of each
    new kernel that a metapackage brings: linux-headers-generic beside linux-image-generic.
    """
    running = running_headers(platform, state)
    if platform.package_manager == "dnf":
        matched = running.replace("-devel-", "-devel-matched-", 1)
        installed = matched.removesuffix(f"-{state.kernel.partition('+')[0]}")
        # at first of the running kernel's version: a newer one would bring a newer kernel
        return [running, installed if installed in state.packages else matched]
    needed = [running] if state.headers != "installed" or running in state.packages else []
    return needed + sorted(
        name for name, offer in state.kernel_headers.items() if offer != "missing"
    )


def warnings(
    nodes: Iterable[Node], states: Mapping[str, NodeState], settings: Settings
) -> list[str]:
    """A line for each machine whose next kernel comes without headers."""
    if not settings.driver.enabled:
        return []
    lines = []
    for node in nodes:
        state = states.get(node.host)
        offers = state.kernel_headers if state and node.gpus else {}
        if missing := sorted(name for name, offer in offers.items() if offer == "missing"):
            lines.append(
                f"[{node.host}] apt has no {', '.join(missing)}: the next kernel comes without "
                "headers, and its boot without NVIDIA driver; remedy: give apt a repository that "
                "has them, or install each new kernel's headers before its reboot"
            )
    return lines
