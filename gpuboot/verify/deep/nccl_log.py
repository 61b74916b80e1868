"""Which network NCCL takes between nodes, as its log says with NCCL_DEBUG=INFO.

Lines: src/transport/net_ib and src/transport/net.cc of NVIDIA/nccl 2.19 and later. Adapters that
NCCL_IB_HCA leaves out are not in it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

_ADAPTER = re.compile(
    r"^(\S+?):\d+:\d+ \[\d+\] NCCL INFO NET/IB ?: \[\d+\] ?([\w.-]+):\S*/(\w+) .*?\bspeed=(\d+)",
    re.MULTILINE,
)
_CHANNEL = re.compile(r"NCCL INFO Channel .* via NET/([^/\n]+)/")
_NETWORK_CHOICE = re.compile(r"NCCL INFO (?:Using network (.+)|Assigned NET plugin (.+) to comm)")


@dataclass(frozen=True)
class Network:
    """+ name: as NCCL calls it: IB, Socket, or that of a plugin; "" where it does not say
    + layer: of its adapters: IB or RoCE; "" for others
    + gbps: Gb/s of all adapters of the node that has least; None where it does not say
    """

    name: str = ""
    layer: str = ""
    gbps: float | None = None

    def __str__(self) -> str:
        speed = f", {self.gbps:g} Gb/s a node" if self.gbps is not None else ""
        return f"{self.layer or self.name or 'a network that NCCL does not name'}{speed}"


def network(text: str) -> Network:
    """What a log says. Lines of other programs stand between its own."""
    used = [match[1] for match in _CHANNEL.finditer(text)]
    used += [(match[1] or match[2]).strip() for match in _NETWORK_CHOICE.finditer(text)]
    name = used[0] if used else ""
    if name != "IB":
        return Network(name)
    speeds: dict[str, dict[str, int]] = defaultdict(dict)
    layers = set[str]()
    for host, adapter, layer, speed in _ADAPTER.findall(text):
        speeds[host][adapter] = int(speed)
        layers.add(layer)
    slowest = min((sum(of.values()) for of in speeds.values()), default=None)
    return Network(
        name,
        layers.pop() if len(layers) == 1 else "",
        slowest / 1000 if slowest is not None else None,
    )
