"""Kubelets that cannot serve, since nobody has signed the certificate that they asked for."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Sighting
from gpuboot.diagnose.facts import Facts

_PENDING_S = 60.0  # the approver decides within a second, and is started anew within a minute


def unsigned(facts: Facts) -> Iterator[Sighting]:
    """Nodes whose latest request was denied, or waits for longer than an approver takes."""
    for request in facts.cluster.serving_requests:
        waited_s = facts.cluster.now - request.created
        if request.state == "signed" or (request.state == "pending" and waited_s < _PENDING_S):
            continue
        text = f"{request.name} of {request.node}'s kubelet is {request.state}"
        if request.state == "pending":
            text += f", for {waited_s:.0f} s"
        evidence = f"{text}: {request.message}" if request.message else text
        yield Sighting(node=request.node, evidence=(evidence,), values={"request": request.name})


TABLE = (
    Cause(
        id="kubelet-certificate",
        meaning="a kubelet has no certificate to serve by: no logs, exec and metrics of its pods",
        find=unsigned,
        remedy="see why in the log of what approves them (`kubectl -n kube-system logs "
        "deployment/kubelet-csr-approver`): with cluster.metrics_server it approves names and "
        "addresses of the inventory alone, and a run tells it of new ones. Then `systemctl restart "
        "kubelet` on the node asks again at once, and pods go on; a request that is pending, not "
        "denied, is approved by hand by `kubectl certificate approve`",
        command="kubectl describe csr {request}",
        explains=("api-extension-unavailable",),
    ),
)
