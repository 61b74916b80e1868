"""What each node's driver says of itself and its GPUs, in its own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import inventory

from deploys.engine.remote import run
from gpuboot.config.inventory import Node
from gpuboot.hosts.nvidia_smi import ACCEPT_WARNING

_AT_ONCE = 32
_READ = "cat /proc/driver/nvidia/version && timeout -k 5 60 nvidia-smi -L" + ACCEPT_WARNING


def driver_texts(nodes: Sequence[Node]) -> dict[str, str]:
    """Node -> the driver's version and its GPUs, by UUID; "" where nobody can say."""

    def read_driver(node: Node) -> str:
        try:
            return run(inventory.get_host(node.host), _READ)
        except PyinfraError:
            return ""

    return dict(
        zip((node.name for node in nodes), Pool(_AT_ONCE).map(read_driver, nodes), strict=True)
    )


def simulated(texts: Mapping[str, str]) -> str:
    """What a driver says that is simulated; "" on real hardware. + texts: of `driver_texts`"""
    lines = (line for text in texts.values() for line in text.splitlines())
    return next((line for line in lines if "simulated" in line.lower()), "")
