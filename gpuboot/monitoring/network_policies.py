"""NetworkPolicies: who may talk to Prometheus, Alertmanager, Grafana and the GPU exporter.

They take a network plugin that enforces them (Calico, Cilium, …); flannel ignores them without a
word. What needs no rule: `kubectl port-forward` ends inside the pod's own network; node-exporter
stands in its host's network, which NetworkPolicies do not reach.

The API server's requests do not come from its node's own address: what a host sends into the pod
network carries the address of the device it leaves by. With flannel that is, to pods of other
nodes, flannel.1 (vxlan) or flannel-wg (wireguard), which have the network address of the node's
range of pods (flannel, pkg/backend/vxlan/vxlan.go: "used as a source address for host to workload
traffic"); to pods of the same node the bridge cni0, which has the first address in it; with host-gw
the node's own. The ranges are known only when the nodes are there: see `reached`.

A namespace whose pods ask Prometheus, Alertmanager or Grafana (an ingress controller, KEDA,
prometheus-adapter) carries the label `gpuboot.io/monitoring-client: "true"`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpuboot.cluster.manifests import Object
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.settings.monitoring import Monitoring
from gpuboot.monitoring.charts.service_monitors import EXPORTER_NAMESPACE

CLIENT_LABEL = "gpuboot.io/monitoring-client"
PROMETHEUS = {"app.kubernetes.io/name": "prometheus"}
ALERTMANAGER = {"app.kubernetes.io/name": "alertmanager"}
GRAFANA = {"app.kubernetes.io/name": "grafana"}
_OPERATED = {"app": "nvidia-dcgm-exporter"}
_OWN_CHART = {"app.kubernetes.io/name": "dcgm-exporter"}
_RELOADER = 8080
_NAME_LABEL = "kubernetes.io/metadata.name"  # every namespace has it, since Kubernetes 1.22
# DaemonSets of plugins that enforce policies beside flannel or instead of it
_ENFORCERS = (
    *("calico-node", "canal", "cilium", "antrea-agent", "kube-router", "weave-net"),
    *("kube-network-policies", "kube-ovn-cni"),
)


def policies(settings: Settings, nodes: Sequence[Node]) -> list[Object]:
    """The NetworkPolicy objects; [] where they are not asked for.

    + nodes: the API server is on their control plane, and `gpuboot verify` asks through it
    """
    monitoring = settings.monitoring
    if not monitoring.network_policies:
        return []
    callers = [_clients(), *_hosts(nodes), _pods(PROMETHEUS)]
    stack = [
        _policy(monitoring.namespace, name, pods, ingress)
        for name, pods, ingress in _stack(monitoring, callers)
    ]
    return [*stack, _exporter(settings, nodes)]


def _stack(
    monitoring: Monitoring, callers: list[Object]
) -> Iterator[tuple[str, dict[str, str], list[Object]]]:
    """(name, labels of the pods, who may reach them) of each part of the monitoring stack."""
    readers = [*callers, _pods(GRAFANA)]
    reload = _allow([_pods(PROMETHEUS)], _RELOADER)
    yield (
        "prometheus",
        PROMETHEUS,
        [_allow(readers, 9090), reload, *_anyone(monitoring.node_ports.get("prometheus"), 9090)],
    )
    yield (
        "alertmanager",
        ALERTMANAGER,
        [
            _allow(readers, 9093),
            reload,
            _mesh(),
            *_anyone(monitoring.node_ports.get("alertmanager"), 9093),
        ],
    )
    if monitoring.grafana:
        yield (
            "grafana",
            GRAFANA,
            [_allow(callers, 3000), *_anyone(monitoring.node_ports.get("grafana"), 3000)],
        )


def reached(objects: Iterable[Object], ranges: Mapping[str, Sequence[str]]) -> list[Object]:
    """The objects, their policies with the hosts' addresses in the pod network beside their own.

    + ranges: address of a node -> addresses of its pods (`spec.podCIDRs`)
    """
    gateways = {
        _block(address): [_block(cidr[number]) for cidr in map(ipaddress.ip_network, cidrs)
                          for number in (0, 1)]
        for address, cidrs in ranges.items()
    }  # fmt: skip
    return [
        _with_gateways(item, gateways) if item["kind"] == "NetworkPolicy" else item
        for item in objects
    ]


def ranges(nodes: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """What `reached` takes, from nodes as the API server's JSON has them."""
    return {
        address["address"]: tuple(node["spec"].get("podCIDRs", ()))
        for node in nodes
        for address in node.get("status", {}).get("addresses", ())
        if address["type"] == "InternalIP"
    }


def _with_gateways(policy: Object, gateways: Mapping[str, Sequence[str]]) -> Object:
    rules = []
    for rule in policy["spec"]["ingress"]:
        blocks = [peer["ipBlock"]["cidr"] for peer in rule.get("from", ()) if "ipBlock" in peer]
        gateway_peers = [
            {"ipBlock": {"cidr": cidr}} for block in blocks for cidr in gateways.get(block, ())
        ]
        rules.append({**rule, "from": [*rule["from"], *gateway_peers]} if gateway_peers else rule)
    return {**policy, "spec": {**policy["spec"], "ingress": rules}}


def warnings(settings: Settings) -> list[str]:
    """What a person should know who asked for policies, before the run."""
    if not (settings.monitoring.enabled and settings.monitoring.network_policies):
        return []
    return [
        "monitoring.network_policies: flannel, which gpuboot installs, does not enforce them; "
        "remedy: add a plugin that does (Calico for policy only, kube-network-policies, …); the "
        "proof's link `policies` says whether one is there"
    ]


def enforcement(daemon_sets: Iterable[str]) -> str:
    """What becomes of policies in a cluster with flannel, in a few words.

    + daemon_sets: names of all DaemonSets
    """
    names = [name for name in daemon_sets if name.startswith(_ENFORCERS)]
    if names:
        return f"enforced by DaemonSet {', '.join(names)}"
    return "not enforced: flannel ignores them, and no DaemonSet of a plugin that would is there"


def exporter_namespace(settings: Settings) -> str:
    """Where dcgm-exporter runs."""
    if settings.exporter.kind == "operator":
        return settings.gpu_operator.namespace
    return EXPORTER_NAMESPACE


def _exporter(settings: Settings, nodes: Sequence[Node]) -> Object:
    prometheus = {
        "namespaceSelector": {"matchLabels": {_NAME_LABEL: settings.monitoring.namespace}},
        "podSelector": {"matchLabels": PROMETHEUS},
    }
    labels = _OPERATED if settings.exporter.kind == "operator" else _OWN_CHART
    return _policy(
        exporter_namespace(settings),
        "dcgm-exporter",
        labels,
        [_allow([prometheus, *_hosts(nodes)], 9400)],
    )


def _policy(namespace: str, name: str, pods: dict[str, str], ingress: list[Object]) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"gpuboot-{name}", "namespace": namespace},
        "spec": {
            "podSelector": {"matchLabels": pods},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def _allow(peers: Iterable[Object], *ports: int) -> Object:
    return {"from": list(peers), "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def _mesh() -> Object:
    """The rule by which Alertmanagers tell each other what they have sent."""
    ports = [{"protocol": protocol, "port": 9094} for protocol in ("TCP", "UDP")]
    return {"from": [_pods(ALERTMANAGER)], "ports": ports}


def _anyone(node_port: int | None, port: int) -> list[Object]:
    """The rule that admits everybody, where a node port is for people outside; else none."""
    return [{"ports": [{"protocol": "TCP", "port": port}]}] if node_port else []


def _pods(labels: dict[str, str]) -> Object:
    return {"podSelector": {"matchLabels": labels}}


def _clients() -> Object:
    return {"namespaceSelector": {"matchLabels": {CLIENT_LABEL: "true"}}}


def _hosts(nodes: Sequence[Node]) -> list[Object]:
    """Addresses of the control plane's hosts, whose API servers pass requests on to Services."""
    return [
        {"ipBlock": {"cidr": _block(node.address)}}
        for node in nodes
        if node.role == "control_plane" and node.address
    ]


def _block(text: object) -> str:
    """An address as a network of that address alone."""
    address = ipaddress.ip_address(str(text))
    return f"{address}/{address.max_prefixlen}"
