"""metrics-server and the approver of kubelets' certificates. All of it runs on the leader."""

from pyinfra.context import host

from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.cluster import operations as kubectl
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF
from gpuboot.cluster import metrics_server
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.plan import Decision

_REASON = "gpuboot did not install it, and installs none beside it"


@operation()
def server_applied(manifest: str) -> Commands:
    """Ensure that metrics-server is as in the manifest, where nothing else serves its API."""
    yield from kubectl.applied_unless(manifest, metrics_server.SERVER, _other_server)


@operation()
def approver_applied(manifest: str) -> Commands:
    """Ensure that the approver is as in the manifest, where nobody else has installed one."""
    yield from kubectl.applied_unless(manifest, metrics_server.APPROVER, _other_approver)


@operation()
def absent(manifest: str, workload: str) -> Commands:
    """Ensure that what gpuboot has applied is gone.

    + manifest: what has been applied; + workload: name of its Deployment
    """
    if not metrics_server.is_applied(read(Cluster, kubeconfig=ADMIN_CONF), workload):
        host.noop(f"gpuboot has no {workload} here")
        return
    yield from kubectl.deleted(manifest)


def _other_server(state: ClusterState) -> Decision | None:
    service = metrics_server.foreign_server(state)
    if not service:
        return None
    subject = f"Service {service} serves {metrics_server.API_SERVICE} (kubectl top, HPAs)"
    return Decision(what=subject, why=_REASON)


def _other_approver(state: ClusterState) -> Decision | None:
    if not metrics_server.is_foreign(state, metrics_server.APPROVER):
        return None
    name = f"{metrics_server.NAMESPACE}/{metrics_server.APPROVER}"
    return Decision(what=f"Deployment {name} approves kubelets' certificates", why=_REASON)
