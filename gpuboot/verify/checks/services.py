"""The network inside the cluster: pods resolve names and reach Services, on each GPU node."""

from __future__ import annotations

from gpuboot.verify.evidence import Evidence, Host, ServiceProbeResult
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


def evaluate(host: Host, evidence: Evidence) -> list[Finding]:
    """What the probe's pod on one node says; [] where verification starts no pods."""
    builder = FindingBuilder("services", "a pod resolves a name and reaches a Service", host.node)
    if reason := evidence.skipped_nodes.get(host.node):
        return [builder.not_covered(reason, "verify again when that is over")]
    return [_finding(item, builder) for item in evidence.service_probes if item.node == host.node]


def _finding(item: ServiceProbeResult, builder: FindingBuilder) -> Finding:
    if item.missing_program:
        remedy = f"set verify.image to an image that has {item.missing_program}, as NVIDIA's has"
        return builder.unknown(f"{item.pod}: {item.error}", remedy)
    if item.error:
        remedy = "the pod's events tell why: `kubectl get events -A --field-selector reason=Failed`"
        return builder.unknown(f"{item.pod or item.node}: {item.error}", remedy)
    wrong = []
    if not item.connected:
        wrong.append(f"{item.address} (Service default/kubernetes) does not answer")
    if not item.resolved:
        wrong.append(f"{item.name} is not resolved")
    if wrong:
        remedy = (_DNS if item.connected else _PROXY).format(node=item.node)
        return builder.failed(" and ".join(wrong), remedy)
    return builder.passed(f"{item.name} is resolved, {item.address} answers")
