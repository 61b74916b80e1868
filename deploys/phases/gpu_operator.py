"""NVIDIA's GPU Operator on hosts that have driver and container toolkit already."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from deploys.operations import helm, kubectl
from deploys.phases.dcgm_exporter import NAMESPACE, RELEASE
from deploys.phases.helm import deploy_chart
from deploys.run.context import Context, current
from gpuboot.charts import expected_gpus, expected_operands, operands, operator_values, rollout_s

_PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}  # operands mount host paths


@deploy("GPU Operator")
def gpu_operator() -> None:
    """Install gpu-operator and wait until every GPU node offers exactly its GPUs."""
    context = current()
    settings = context.settings.gpu_operator
    if not (context.node.leader and settings.enabled):
        return
    kubectl.namespace(name="Create the namespace", namespace=settings.namespace, labels=_PRIVILEGED)
    if context.settings.exporter.kind == "operator":
        helm.absent(
            name="Uninstall the stand-alone dcgm-exporter", release=RELEASE, namespace=NAMESPACE
        )
    values = operator_values(context.settings, context.lock)
    deploy_chart("gpu-operator", "gpu-operator", settings.namespace, values)
    _wait(context)


def _wait(context: Context) -> None:
    settings = context.settings
    nodes = sum(bool(node.gpus) for node in context.nodes)
    kubectl.gpus_ready(
        name=f"Wait until {nodes} GPU nodes have their GPUs allocatable",
        namespace=settings.gpu_operator.namespace,
        operands=operands(settings, context.lock, nodes),
        gpus=expected_gpus(context.nodes, settings),
        policy=bool(nodes),
        timeout_s=rollout_s(nodes, settings.gpu_operator.timeout_s),
        made_of=expected_operands(settings, context.lock),
    )
