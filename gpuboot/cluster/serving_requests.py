"""What kubelets have asked the cluster for: the certificates that they serve by.

With `serverTLSBootstrap` a kubelet serves nothing (logs, exec, metrics) before that is signed.
Source: kubernetes.io, Kubelet TLS bootstrapping, Certificate rotation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpuboot.cluster.objects import seconds

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_SIGNER = "kubernetes.io/kubelet-serving"
_USER = "system:node:"
_CONDITIONS: Mapping[str, Literal["denied", "failed"]] = {"Denied": "denied", "Failed": "failed"}


@dataclass(frozen=True)
class ServingRequest:
    """A kubelet's latest request.

    + state: `pending` until it is signed; + message: why it was denied, or could not be signed
    + created: seconds since 1970; 0.0 where it is not known
    """

    node: str
    name: str
    state: Literal["pending", "signed", "denied", "failed"]
    message: str = ""
    created: float = 0.0


def parse(items: Iterable[Mapping[str, Any]]) -> tuple[ServingRequest, ...]:
    """The latest request of each kubelet, of the API's CertificateSigningRequests."""
    requests: dict[str, ServingRequest] = {}
    for item in sorted(items, key=lambda item: item["metadata"].get("creationTimestamp", "")):
        user = item["spec"].get("username", "")
        if item["spec"].get("signerName") == _SIGNER and user.startswith(_USER):
            request = _request(user.removeprefix(_USER), item)
            requests[request.node] = request
    return tuple(requests.values())


def _request(node: str, item: Mapping[str, Any]) -> ServingRequest:
    name, status = item["metadata"]["name"], item.get("status", {})
    created = seconds(item["metadata"].get("creationTimestamp"))
    for condition in status.get("conditions", ()):
        if refusal := _CONDITIONS.get(condition["type"]):
            return ServingRequest(node, name, refusal, condition.get("message", ""), created)
    state: Literal["signed", "pending"] = "signed" if status.get("certificate") else "pending"
    return ServingRequest(node, name, state, "", created)
