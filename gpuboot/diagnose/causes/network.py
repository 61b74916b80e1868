"""What is wrong between hosts: the pod network's links, sizes and ways."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.diagnose.facts import Facts, Host
from gpuboot.diagnose.model import Cause, Confidence, Sighting

_VXLAN = 50  # bytes around a packet: IPv4, UDP, VXLAN, Ethernet
_STRICT = 1
_NO_CNI = ("cni plugin not initialized", "cni config uninitialized")


def mtu(facts: Facts) -> Iterator[Sighting]:
    """A pod network's link that takes more than fits into the link below it, or than others do."""
    sizes: dict[str, int] = {}
    for host in facts.read:
        for link in host.details.vxlan:
            above, below = host.details.mtu.get(link.name), host.details.mtu.get(link.below)
            if above is None or below is None:
                continue
            sizes[host.node] = above
            if above > below - _VXLAN:
                seen = (
                    f"{link.name} has MTU {above}, and {link.below} below it only {below}: "
                    f"at most {below - _VXLAN} fit",
                )
                values = {"link": link.name, "size": str(below - _VXLAN)}
                yield Sighting(node=host.node, evidence=seen, values=values)
    if len(set(sizes.values())) > 1:
        seen = (", ".join(f"{node}: {size}" for node, size in sizes.items()),)
        smallest = str(min(sizes.values()))
        node = max(sizes, key=lambda name: sizes[name])
        yield Sighting(
            node=node,
            evidence=(f"MTUs of the pod network differ: {seen[0]}",),
            confidence=Confidence.LIKELY,
            values={"link": "flannel.1", "size": smallest},
        )


def asymmetric_route(facts: Facts) -> Iterator[Sighting]:
    """Packets to a peer leave with another address than the one by which it reaches this node."""
    for host in facts.read:
        own = {link.local for link in host.details.vxlan}
        seen = [
            f"to {peer.address} by {peer.device} as {peer.source}, while the pod network uses "
            f"{', '.join(sorted(own))}"
            for peer in host.details.peers
            if own and peer.source and peer.source not in own
        ]
        strict = [device for device, mode in _modes(host).items() if mode == _STRICT]
        martian = [line for line in host.details.kernel if "martian" in line]
        if len(host.details.default_routes) > 1 and martian:
            seen.append(
                f"{len(host.details.default_routes)} default routes: "
                f"{'; '.join(host.details.default_routes)}"
            )
        if seen:
            if strict:
                seen.append(
                    f"rp_filter is strict on {', '.join(strict[:4])}: it drops answers "
                    "that come another way"
                )
            sure = Confidence.CERTAIN if strict or martian else Confidence.LIKELY
            yield Sighting(node=host.node, evidence=(*seen[:4], *martian[-1:]), confidence=sure)


def _modes(host: Host) -> dict[str, int]:
    """The filter in force: the kernel takes the greater of a device's and of all."""
    least = host.details.rp_filter.get("all", 0)
    devices = {
        name: mode
        for name, mode in host.details.rp_filter.items()
        if name not in ("all", "default", "lo")
    }
    return {name: max(mode, least) for name, mode in devices.items()}


def pod_network_missing(facts: Facts) -> Iterator[Sighting]:
    for node in facts.cluster.nodes:
        if not node.ready and any(text in node.message for text in _NO_CNI):
            host = next((one for one in facts.read if one.node == node.name), None)
            none = host is not None and not host.details.cni
            seen = [node.message, *(["/etc/cni/net.d is empty"] if none else [])]
            yield Sighting(node=node.name, evidence=tuple(seen))


TABLE = (
    Cause(
        id="mtu",
        meaning="the pod network's MTU does not fit the network below it: large packets are lost",
        find=mtu,
        remedy="set the pod network's MTU to 50 less than the network's own (VXLAN)",
        command="sudo ip link set {link} mtu {size}; "
        "kubectl -n kube-flannel rollout restart daemonset",
        on="node",
    ),
    Cause(
        id="asymmetric-route",
        meaning="packets between nodes go one way and come back another",
        find=asymmetric_route,
        remedy="give the network of the nodes the better route, or loosen rp_filter to 2",
        command="ip route; ip rule; sudo sysctl -w net.ipv4.conf.all.rp_filter=2",
        on="node",
        explains=("api-from-pods", "prometheus-target-down", "api-firewalled"),
    ),
    Cause(
        id="pod-network-missing",
        meaning="the node has no pod network: its plugin has written no configuration",
        find=pod_network_missing,
        remedy="look at the pods of the pod network on this node",
        command="kubectl -n kube-flannel get pods -o wide; "
        "kubectl -n kube-flannel logs -l app=flannel --tail=20",
        explains=("node-not-ready", "coredns-not-ready", "pending-taint"),
    ),
)
