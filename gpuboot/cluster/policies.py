"""NetworkPolicies of the API: whether they let one pod reach another.

Source: kubernetes.io, Network Policies: pods that policies select get only what one of them admits.
"""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from gpuboot.cluster.pods import Pod
from gpuboot.cluster.selectors import matches

Json = Mapping[str, Any]


def denying(
    policies: Iterable[tuple[str, Json]], pod: Pod, port: int, source: Pod, space: Mapping[str, str]
) -> list[str]:
    """Names of the policies that together keep a pod from another one; [] where it is admitted.

    + policies: name, as `namespace/name`, and specification
    + source: the pod that asks; space: labels of its namespace
    """
    selecting = {
        name: spec
        for name, spec in policies
        if name.startswith(f"{pod.namespace}/")
        and "Ingress" in (spec.get("policyTypes") or ("Ingress",))
        and matches(spec.get("podSelector") or {}, pod.labels)
    }
    near: Json | None = {} if source.namespace == pod.namespace else None
    rules = (rule for spec in selecting.values() for rule in spec.get("ingress") or ())
    is_admitted = any(
        _has_port(rule, port)
        and any(_is_peer(peer, source, space, near) for peer in rule.get("from") or [{}])
        for rule in rules
    )
    return [] if is_admitted else list(selecting)


def _has_port(rule: Json, port: int) -> bool:
    """Whether a rule is about a port; a name may stand for any."""
    ports = [(item.get("port", port), item.get("endPort")) for item in rule.get("ports") or [{}]]
    return any(isinstance(low, str) or low <= port <= (high or low) for low, high in ports)


def _is_peer(peer: Json, source: Pod, space: Mapping[str, str], near: Json | None) -> bool:
    if block := peer.get("ipBlock"):
        networks = [ip_network(text) for text in (block["cidr"], *block.get("except", ()))]
        inside, *left_out = [ip_address(source.address) in network for network in networks]
        return inside and not any(left_out)
    spaces = peer.get("namespaceSelector", near if peer else {})
    return matches(spaces, space) and matches(peer.get("podSelector", {}), source.labels)
