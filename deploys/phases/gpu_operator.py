"""NVIDIA's GPU Operator on hosts that have driver and container toolkit already."""

from __future__ import annotations

from deploys.lib.operation import phase
from deploys.operations import kubectl
from deploys.phases.helm import deploy_chart
from deploys.run.context import Context, current
from gpuboot.charts import expected_gpus, expected_operands, operands, operator_values, rollout_s
from gpuboot.kubernetes.cluster_state import ClusterState
from gpuboot.kubernetes.readiness import Part, Progress, operator_ready

_PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}  # operands mount host paths


@phase("GPU Operator")
def gpu_operator() -> None:
    """Install gpu-operator, which makes every GPU node offer exactly its GPUs."""
    context = current()
    settings = context.settings.gpu_operator
    if not (context.node.leader and settings.enabled):
        return
    kubectl.namespace(name="Create the namespace", namespace=settings.namespace, labels=_PRIVILEGED)
    values = operator_values(context.settings, context.lock)
    deploy_chart("gpu-operator", "gpu-operator", settings.namespace, values)


def awaited(context: Context) -> list[Part]:
    """The operator's operands as the values have them, its ClusterPolicy, and all GPUs on offer."""
    settings = context.settings
    if not settings.gpu_operator.enabled:
        return []
    namespace = settings.gpu_operator.namespace
    made_of = expected_operands(settings, context.lock)

    def look(state: ClusterState) -> Progress:
        wanted = operands(settings, context.lock, _gpu_nodes(context))
        gpus = expected_gpus(context.present, settings)
        return operator_ready(state, namespace, wanted, gpus, made_of)

    return [
        Part(
            look,
            rollout_s(_gpu_nodes(context), settings.gpu_operator.timeout_s),
            f"see `kubectl -n {namespace} get pods` and the logs of what is not ready; a node that"
            " offers too few GPUs: `nvidia-smi` on it, then `kubectl describe node`",
        )
    ]


def _gpu_nodes(context: Context) -> int:
    return sum(bool(node.gpus) for node in context.present)
