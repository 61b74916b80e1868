"""dcgm-exporter by its own chart, for sites that do not want it under the GPU Operator."""

from deploys.engine.operation import phase
from deploys.parts.cluster import operations as kubectl
from deploys.parts.switched_off import operations as absent
from deploys.phases.helm import deploy_chart
from deploys.run.context import Context, current
from gpuboot.cluster.readiness import Part, workloads_ready
from gpuboot.monitoring.charts.exporter import exporter_values, needs_runtime_class, rollout_s
from gpuboot.monitoring.charts.service_monitors import EXPORTER_NAMESPACE, EXPORTER_RELEASE

NAMESPACE, RELEASE = EXPORTER_NAMESPACE, EXPORTER_RELEASE
_PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}  # SYS_ADMIN for profiling


@phase("DCGM exporter")
def dcgm_exporter() -> None:
    """Install the stand-alone exporter where `exporter.kind` is "chart"; else do nothing.

    Two exporters would count everything twice, and only one can profile a GPU: the GPU Operator's
    goes before.
    """
    context = current()
    settings = context.settings
    if not (context.node.leader and _enabled(context)):
        return
    kubectl.namespace(name="Create the namespace", namespace=NAMESPACE, labels=_PRIVILEGED)
    if needs_runtime_class(settings):
        kubectl.runtime_class(
            name="Create the RuntimeClass nvidia",
            runtime="nvidia",
            handler="nvidia",
        )
    if settings.gpu_operator.enabled:
        absent.operand(
            name="Wait until the GPU Operator's exporter has gone",
            daemonset="nvidia-dcgm-exporter",
            namespace=settings.gpu_operator.namespace,
        )
    deploy_chart("dcgm-exporter", RELEASE, NAMESPACE, exporter_values(settings, context.lock))


def rollout_parts(context: Context) -> list[Part]:
    """The exporter on every GPU node, where it is installed by its own chart."""
    if not _enabled(context):
        return []

    def nodes() -> int:
        return sum(bool(node.gpus) for node in context.present)

    return [
        Part(
            lambda state: workloads_ready(state, NAMESPACE, {RELEASE: nodes()}),
            rollout_s(nodes()),
            f"see `kubectl -n {NAMESPACE} get pods` and the logs of what is not ready",
        )
    ]


def _enabled(context: Context) -> bool:
    return context.settings.exporter.kind == "chart"
