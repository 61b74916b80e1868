"""metrics-server, which `kubectl top` and HPAs ask, and what approves kubelets' certificates.

metrics-server trusts certificates that the cluster has signed. Kubernetes signs a kubelet's only
when somebody has approved it: kubelet-csr-approver does, for the names and addresses of the site's
nodes alone. Objects have upstream's names.
Source: metrics-server v0.9.0, manifests/base; kubelet-csr-approver v1.2.14, deploy/k8s.
"""

from collections.abc import Sequence

from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.readiness import Progress, api_answers, deployment_ready
from gpuboot.cluster.serving_requests import ServingRequest
from gpuboot.cluster.stuck import CERTAIN_S, Stuck
from gpuboot.cluster.workloads import find_workload
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.templates import render

NAMESPACE = "kube-system"
SERVER = "metrics-server"
APPROVER = "kubelet-csr-approver"
API_SERVICE = "v1beta1.metrics.k8s.io"
_SERVER_IMAGE = "registry.k8s.io/metrics-server/metrics-server"
_APPROVER_IMAGE = "ghcr.io/postfinance/kubelet-csr-approver"
_REMEDY = (
    f"see `kubectl get csr` and `kubectl -n {NAMESPACE} logs deployment/{APPROVER}`; "
    "`kubectl certificate approve NAME` approves a pending request by hand, and `systemctl restart "
    "kubelet` on the node asks again after a denial"
)


def images(lock: Lock) -> tuple[str, str]:
    """The images of metrics-server and of the approver."""
    tags = lock.images
    return (
        f"{_SERVER_IMAGE}:{tags.metrics_server}",
        f"{_APPROVER_IMAGE}:{tags.kubelet_csr_approver}",
    )


def server(settings: Settings, lock: Lock) -> str:
    """metrics-server's manifest, without a digest."""
    return render(
        "kubernetes/metrics-server.yaml.j2", image=images(lock)[0], gated=settings.gate.enabled
    )


def approver(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> str:
    """The approver's manifest, without a digest. + nodes: whose kubelets get certificates"""
    names = "|".join(node.name.replace(".", r"\.") for node in nodes)
    return render(
        "kubernetes/kubelet-csr-approver.yaml.j2",
        image=images(lock)[1],
        names=f"^({names})$",
        addresses=",".join(_network(node.address) for node in nodes),
        gated=settings.gate.enabled,
    )


def _network(address: str) -> str:
    return f"{address}/{128 if ':' in address else 32}"


def foreign_server(state: ClusterState) -> str:
    """What serves the API of resource metrics and is not gpuboot's; "" for nothing.

    Its Service, as `namespace/name`.
    """
    service = state.metrics_service
    is_own_name = service in ("", f"{NAMESPACE}/{SERVER}")
    return (
        "" if is_own_name and not is_foreign(state, SERVER) else service or f"{NAMESPACE}/{SERVER}"
    )


def is_foreign(state: ClusterState, name: str) -> bool:
    """Whether somebody else has made the Deployment of this name."""
    deployment = find_workload(state.workloads, NAMESPACE, name)
    return deployment is not None and not deployment.digest


def is_applied(state: ClusterState, name: str) -> bool:
    """Whether gpuboot has made the Deployment of this name."""
    deployment = find_workload(state.workloads, NAMESPACE, name)
    return deployment is not None and bool(deployment.digest)


def ready(state: ClusterState, name: str) -> Progress:
    """Whether a Deployment of gpuboot's runs; one of somebody else's is not waited for."""
    if state.error or is_applied(state, name):
        return deployment_ready(state, NAMESPACE, name)
    return Progress(True, f"{name} is not gpuboot's")


def certificates_signed(state: ClusterState, names: Sequence[str]) -> Progress:
    """Whether the kubelets of these nodes have the certificates that they have asked for."""
    if state.error:
        return api_answers(state)
    missing = [
        request
        for request in state.serving_requests
        if request.node in names and request.state != "signed"
    ]
    total = len(names)
    text = f"{total - len(missing)} of {total} kubelets have the certificates that they asked for"
    if missing:
        text += f"; not yet: {', '.join(map(_describe, missing))}"
    return Progress(
        not missing,
        text,
        stuck=tuple(
            Stuck(
                f"certificate of {request.node}'s kubelet", _describe(request), CERTAIN_S, _REMEDY
            )
            for request in missing
        ),
        ready=total - len(missing),
    )


def _describe(request: ServingRequest) -> str:
    text = f"{request.node} ({request.name} is {request.state}"
    return f"{text}: {request.message})" if request.message else f"{text})"
