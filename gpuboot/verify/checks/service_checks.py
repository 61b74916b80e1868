"""The network inside the cluster: pods resolve names and reach Services, on each GPU node."""

from __future__ import annotations

from gpuboot.verify.checks.pod_remedies import without_answer
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, ServiceProbeResult
from gpuboot.verify.findings import Finding, FindingBuilder

_PROXY = (
    "kube-proxy on {node} routes to Services: see the log of its pod there (`kubectl -n "
    "kube-system get pods -l k8s-app=kube-proxy --field-selector spec.nodeName={node}`; deleting "
    "that restarts it), and on the node the rules that it wrote: `nft list map ip kube-proxy "
    "service-ips`, `iptables-save | grep KUBE-SERVICES` or `ipvsadm -Ln`, by cluster.proxy_mode"
)
_DNS = (
    "see CoreDNS (`kubectl -n kube-system get pods,endpointslices -l k8s-app=kube-dns -o wide`, "
    "and its log), and whether {node} reaches CoreDNS' pods on other nodes: flannel's packets "
    "between nodes are UDP 8472 (vxlan) or 51820 (wireguard)"
)


_FORWARD = (
    "CoreDNS asks the servers of `forward` in its Corefile (`kubectl -n kube-system get configmap "
    "coredns -o yaml`), by default those of /etc/resolv.conf on the nodes of its pods: mend those, "
    "and see CoreDNS' log (`kubectl -n kube-system logs -l k8s-app=kube-dns`)"
)
_NODE = (
    "see /etc/resolv.conf on {node} (`resolvectl status` where systemd-resolved is), and whether "
    "it reaches the servers there: `getent ahosts {name}`"
)
_NO_NAME = (
    "correct the name (mirrors.images, proxy, verify.outside_name), or its entry in DNS; "
    'verify.outside_name = "" asks for none'
)
_RCODES = {"1": "FORMERR", "2": "SERVFAIL", "3": "NXDOMAIN", "4": "NOTIMP", "5": "REFUSED"}


def evaluate(host: Host, evidence: Evidence) -> list[Finding]:
    """What the probe's pod on one node says."""
    builder = FindingBuilder("services", "a pod resolves a name and reaches a Service", host.node)
    if reason := evidence.skipped_nodes.get(host.node):
        return [builder.not_covered(reason, "verify again when that is over")]
    results = [item for item in evidence.service_probes if item.node == host.node]
    if not results:
        return [builder.not_covered("no pod tried it on this node", "verify again")]
    return [_finding(item, host, builder) for item in results]


def _finding(item: ServiceProbeResult, host: Host, builder: FindingBuilder) -> Finding:
    if item.missing_program:
        remedy = f"set verify.image to an image that has {item.missing_program}, as NVIDIA's has"
        return builder.unknown(f"{item.pod}: {item.error}", remedy)
    if item.error:
        remedy = without_answer(item.error)
        return builder.unknown(f"{item.pod or item.node}: {item.error}", remedy)
    problems = []
    if not item.connected:
        problems.append(f"{item.address} (Service default/kubernetes) does not answer")
    if not item.resolved:
        problems.append(f"{item.name} is not resolved")
    if problems:
        remedy = (_DNS if item.connected else _PROXY).format(node=item.node)
        return builder.failed(" and ".join(problems), remedy)
    detail = f"{item.name} is resolved, {item.address} answers"
    if not item.outside:
        return builder.passed(f"{detail}; no name beyond the cluster is asked for")
    if host.outside == "hosts-file" and not item.outside_required:
        reason = "stands in /etc/hosts of the node, so DNS is not asked for it"
        return builder.passed(f"{detail}; {item.outside} {reason}")
    if fault := _outside(item, host.outside == "unresolved"):
        return builder.failed(*fault)
    return builder.passed(f"{detail}; {item.outside} is resolved")


def _outside(item: ServiceProbeResult, node_fails: bool) -> tuple[str, str] | None:
    """What is wrong with names beyond the cluster, and what to do; None: nothing.

    + node_fails: the node itself does not resolve it either
    """
    of_node = _NODE.format(node=item.node, name=item.outside)
    if item.outside_answer == "resolved":
        if not node_fails:
            return None
        return (
            f"pods resolve {item.outside}, and the node itself does not: it pulls no image by "
            "that name",
            of_node,
        )
    kind, _, code = item.outside_answer.partition(" ")
    word = _RCODES.get(code, f"rcode {code}") if kind == "rcode" else ""
    if word == "NXDOMAIN" and node_fails:
        return f"there is no such name as {item.outside} (NXDOMAIN)", _NO_NAME
    if word == "NXDOMAIN":
        return (
            f"CoreDNS' servers know no {item.outside} (NXDOMAIN), and the node resolves it: they "
            "are others than the node's",
            _FORWARD,
        )
    answer = f"CoreDNS answers {word}" if word else "nothing answers"
    detail = f"pods do not resolve {item.outside}, a name beyond the cluster: {answer}"
    if node_fails:
        return f"{detail}; the node itself does not resolve it either", f"{of_node}; {_FORWARD}"
    return detail, _FORWARD
