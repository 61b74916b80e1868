"""What is wrong between hosts: the pod network's links, sizes and ways."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import RECENT_S, Facts, Host
from gpuboot.hosts.packet_verdict import Flow, judge
from gpuboot.preflight import firewall, firewall_remedies

_VXLAN = 50  # bytes around a packet: IPv4, UDP, VXLAN, Ethernet
_STRICT = 1
_FULL = 0.98  # of the connections that a kernel tracks
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
                evidence = (
                    f"{link.name} has MTU {above}, and {link.below} below it only {below}: "
                    f"at most {below - _VXLAN} fit",
                )
                values = {"link": link.name, "size": str(below - _VXLAN)}
                yield Sighting(node=host.node, evidence=evidence, values=values)
    if len(set(sizes.values())) > 1:
        evidence = (", ".join(f"{node}: {size}" for node, size in sizes.items()),)
        smallest = str(min(sizes.values()))
        node = max(sizes, key=lambda name: sizes[name])
        yield Sighting(
            node=node,
            evidence=(f"MTUs of the pod network differ: {evidence[0]}",),
            confidence=Confidence.LIKELY,
            values={"link": "flannel.1", "size": smallest},
        )


def asymmetric_route(facts: Facts) -> Iterator[Sighting]:
    """Packets to a peer leave with another address than the one by which it reaches this node."""
    for host in facts.read:
        local_addresses = {link.local for link in host.details.vxlan}
        evidence = [
            f"to {peer.address} by {peer.device} as {peer.source}, while the pod network uses "
            f"{', '.join(sorted(local_addresses))}"
            for peer in host.details.peers
            if local_addresses and peer.source and peer.source not in local_addresses
        ]
        strict = [device for device, mode in _modes(host).items() if mode == _STRICT]
        martian = host.kernel("martian", within_s=RECENT_S)
        if len(host.details.default_routes) > 1 and martian:
            evidence.append(
                f"{len(host.details.default_routes)} default routes: "
                f"{'; '.join(host.details.default_routes)}"
            )
        if evidence:
            if strict:
                evidence.append(
                    f"rp_filter is strict on {', '.join(strict[:4])}: it drops answers "
                    "that come another way"
                )
            confidence = Confidence.CERTAIN if martian else Confidence.LIKELY
            yield Sighting(
                node=host.node, evidence=(*evidence[:4], *martian[-1:]), confidence=confidence
            )


def _modes(host: Host) -> dict[str, int]:
    """The filter in force: the kernel takes the greater of a device's and of all."""
    strictest_mode = host.details.rp_filter.get("all", 0)
    devices = {
        name: mode
        for name, mode in host.details.rp_filter.items()
        if name not in ("all", "default", "lo")
    }
    return {name: max(mode, strictest_mode) for name, mode in devices.items()}


def pod_network_missing(facts: Facts) -> Iterator[Sighting]:
    for node in facts.cluster.nodes:
        if not node.ready and any(text in node.message for text in _NO_CNI):
            host = next(
                (candidate for candidate in facts.read if candidate.node == node.name), None
            )
            none = host is not None and not host.details.cni
            evidence = [node.message, *(["/etc/cni/net.d is empty"] if none else [])]
            confidence = Confidence.CERTAIN if none else Confidence.LIKELY
            yield Sighting(node=node.name, evidence=tuple(evidence), confidence=confidence)


def forward_drop(facts: Facts) -> Iterator[Sighting]:
    """The rules of a host, as the kernel has them, drop what pods send to others."""
    if not facts.pod_cidr:
        return
    pods = ipaddress.ip_network(facts.pod_cidr)
    for host in facts.read:
        if host.state is None or not host.joined:
            continue
        links = [link.name for link in host.details.vxlan] or [""]
        ways = [
            (pods, None, firewall.POD_BRIDGE, ""),
            *((pods, pods, firewall.POD_BRIDGE, link) for link in links),
            *((pods, pods, link, firewall.POD_BRIDGE) for link in links),
        ]
        flows = [Flow("forward", pods.version, "udp", 53, *way) for way in ways]
        drops = {flow: judge(host.state.packet_filter, flow).drop for flow in flows}
        ends = {end.label: end for end in drops.values() if end}
        for label, end in ends.items():
            dropped = [flow for flow, drop in drops.items() if drop and drop.label == label]
            fix = firewall_remedies.commands("forward", end, dropped, host.state, facts.pod_cidr)
            yield Sighting(
                node=host.node,
                evidence=(f"{label}: packets of {facts.pod_cidr} are dropped", *_docker_note(host)),
                values={"fix": "; ".join(f"sudo {command}" for command in fix)},
            )


def conntrack_full(facts: Facts) -> Iterator[Sighting]:
    """Hosts whose kernel tracks as many connections as it may: it drops what begins another."""
    for host in facts.read:
        used, limit = host.details.conntrack
        if limit and used >= limit * _FULL:
            yield Sighting(
                node=host.node,
                evidence=(f"nf_conntrack_count is {used}, nf_conntrack_max {limit}",),
                values={"larger": str(limit * 2)},
            )


def _docker_note(host: Host) -> list[str]:
    """Docker sets the policy where it finds forwarding off as it starts."""
    return ["docker.service runs there"] if host.running("docker") else []


TABLE = (
    Cause(
        id="mtu",
        meaning="the pod network's MTU does not fit the network below it: large packets are lost",
        find=mtu,
        remedy="set the pod network's MTU to 50 less than the network's own (VXLAN)",
        command="kubectl -n kube-flannel rollout restart daemonset/kube-flannel-ds; "
        "ssh {node} sudo ip link set {link} mtu {size}",
    ),
    Cause(
        id="asymmetric-route",
        meaning="packets between nodes go one way and come back another",
        find=asymmetric_route,
        remedy="give the network of the nodes the better route, or loosen rp_filter to 2",
        command="ip route; ip rule; sudo sysctl -w net.ipv4.conf.all.rp_filter=2",
        on="node",
        explains=(
            *("api-from-pods", "prometheus-target-down", "api-firewalled"),
            "api-extension-unavailable",
        ),
    ),
    Cause(
        id="pod-network-missing",
        meaning="the node has no pod network: its plugin has written no configuration",
        find=pod_network_missing,
        remedy="look at the pods of the pod network on this node",
        command="kubectl -n kube-flannel get pods -o wide; "
        "kubectl -n kube-flannel logs -l app=flannel --tail=20",
        explains=(
            *("node-not-ready", "coredns-not-ready", "pending-taint"),
            "api-extension-unavailable",
        ),
    ),
    Cause(
        id="conntrack-full",
        meaning="the kernel tracks as many connections as it may, and drops packets of new ones",
        find=conntrack_full,
        remedy="see who opens them all; raise the limit, which kube-proxy sets when it starts "
        "(conntrack.maxPerCore and conntrack.min of its ConfigMap)",
        command="sysctl net.netfilter.nf_conntrack_count; "
        "sudo sysctl -w net.netfilter.nf_conntrack_max={larger}",
        on="node",
        explains=(
            *("api-from-pods", "api-firewalled", "dns-upstream", "prometheus-target-down"),
            *("pod-crash-loop", "pod-not-ready", "node-not-ready", "api-extension-unavailable"),
        ),
    ),
    Cause(
        id="forward-drop",
        meaning="a host drops the packets of its pods: a policy or rule of its packet filter, as "
        "Docker, ufw or a person sets it (iptables -P FORWARD DROP)",
        find=forward_drop,
        remedy="let the pods' packets pass, and store that where the rules come from (beside "
        "Docker deploys/site.py does both)",
        command="{fix}",
        on="node",
        explains=(
            *("api-from-pods", "coredns-not-ready", "pod-crash-loop", "operator-crash-loop"),
            *("prometheus-target-down", "prometheus-down", "dns-upstream"),
            "api-extension-unavailable",
        ),
    ),
)
