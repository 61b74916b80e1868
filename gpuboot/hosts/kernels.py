"""Kernel headers: DKMS builds the NVIDIA module against them, for every kernel that is to boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState


def headers(state: NodeState) -> list[str]:
    """Packages with the headers that a machine needs.

    The running kernel's, unless they are there by other means; and what brings the headers of each
    new kernel that a metapackage brings: linux-headers-generic beside linux-image-generic.
    """
    own = f"linux-headers-{state.kernel}"
    running = [own] if state.headers != "installed" or own in state.packages else []
    return running + sorted(
        name for name, offer in state.kernel_headers.items() if offer != "missing"
    )


def warnings(
    nodes: Iterable[Node], states: Mapping[str, NodeState], settings: Settings
) -> list[str]:
    """A line for each machine whose next kernel comes without headers."""
    if not settings.driver.enabled:
        return []
    found = []
    for node in nodes:
        state = states.get(node.host)
        offers = state.kernel_headers if state and node.gpus else {}
        if missing := sorted(name for name, offer in offers.items() if offer == "missing"):
            found.append(
                f"[{node.host}] apt has no {', '.join(missing)}: the next kernel comes without "
                "headers, and its boot without NVIDIA driver; remedy: give apt a repository that "
                "has them, or install each new kernel's headers before its reboot"
            )
    return found
