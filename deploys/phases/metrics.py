"""metrics-server: what `kubectl top` and HPAs on CPU and memory ask."""

from deploys.engine.operation import phase
from deploys.parts.metrics import operations as operations
from deploys.run.context import Context, current
from gpuboot.cluster.metrics_server import (
    APPROVER,
    NAMESPACE,
    SERVER,
    approver,
    certificates_signed,
    ready,
    server,
)
from gpuboot.cluster.readiness import Part

_CERTIFICATES_S = 300
_READY_S = 300
_LOGS = f"see `kubectl -n {NAMESPACE} logs deployment/{{}}` and `kubectl -n {NAMESPACE} get pods`"


@phase("Metrics")
def metrics() -> None:
    """Install metrics-server, unless something else serves its API."""
    context = current()
    if context.node.leader and context.settings.cluster.metrics_server:
        operations.server_applied(
            name="Install metrics-server", manifest=server(context.settings, context.lock)
        )


def certificates_approved(context: Context) -> None:
    """Install what approves the certificates that kubelets ask for, before any kubelet asks."""
    if context.settings.cluster.metrics_server:
        operations.approver_applied(
            name="Install the approver of kubelets' certificates",
            manifest=approver(context.settings, context.lock, context.nodes),
        )


def absent(context: Context) -> None:
    """Take both away where they are switched off; kubelets sign for themselves by then."""
    settings, lock = context.settings, context.lock
    if not settings.cluster.metrics_server:
        operations.absent(
            name="Remove metrics-server", manifest=server(settings, lock), workload=SERVER
        )
        operations.absent(
            name="Remove the approver of kubelets' certificates",
            manifest=approver(settings, lock, context.nodes),
            workload=APPROVER,
        )


def rollout_parts(context: Context) -> list[Part]:
    """Certificates of all kubelets, and metrics-server, where it is installed."""
    if not context.settings.cluster.metrics_server:
        return []
    names = [node.name for node in context.present]
    return [
        Part(lambda state: ready(state, APPROVER), _READY_S, _LOGS.format(APPROVER)),
        Part(
            lambda state: certificates_signed(state, names),
            _CERTIFICATES_S,
            f"see `kubectl get csr` and `kubectl -n {NAMESPACE} logs deployment/{APPROVER}`",
        ),
        Part(lambda state: ready(state, SERVER), _READY_S, _LOGS.format(SERVER)),
    ]
