"""When kubelets last reported. Each renews a Lease every ten seconds; a node stays Ready for 50 s
without, so Ready alone does not tell that its kubelet lives.

Sources: kubernetes v1.36.3, pkg/kubelet/kubelet.go (a Lease of 40 s, renewed after a quarter of
it), pkg/controller/nodelifecycle (when a node is no longer Ready); the API's ManagedFieldsEntry.
"""

from collections.abc import Mapping
from typing import Any

from gpuboot.cluster.objects import seconds

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SILENT_S = 25.0  # two renewals have not come


def last_report(lease: Mapping[str, Any], node: Mapping[str, Any]) -> float:
    """When a kubelet last wrote its Lease or its Node, in seconds since 1970; 0.0 for never.

    It is the API server's clock that notes each write in `managedFields`. Only where it has not is
    it the node's own, by which the kubelet writes `renewTime`.

    + lease: {} where there is none
    """
    entries = [
        entry
        for item in (lease, node)
        for entry in item.get("metadata", {}).get("managedFields", ())
    ]
    times = [seconds(item.get("time", "")) for item in entries if item["manager"] == "kubelet"]
    return max(times, default=seconds(lease.get("spec", {}).get("renewTime", "")))
