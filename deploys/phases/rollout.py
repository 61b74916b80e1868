"""Waits for what the phases before have applied: all together, since pods start side by side."""

from deploys.engine.operation import phase
from deploys.parts.containerd import operations as containerd
from deploys.parts.rollout import operations as operations
from deploys.phases import (
    dcgm_exporter,
    gpu_operator,
    kubernetes,
    logs,
    metrics,
    monitoring,
    storage,
)
from deploys.run.context import Context, current
from gpuboot.cluster.local_path import NAMESPACE
from gpuboot.cluster.metrics_server import APPROVER, SERVER
from gpuboot.hosts import gpu_sharing


@phase("Rollout")
def rollout() -> None:
    """Wait until nodes are Ready, workloads run, and every GPU node offers exactly its GPUs."""
    context = current()
    if context.node.leader:
        _wait_for_rollout(context)
    share = gpu_sharing.of(context.node, context.settings)
    if context.node.gpus and share and share.mig:  # a new node has its instances only now
        containerd.cdi(name="Generate the CDI specification of the MIG instances")


def _wait_for_rollout(context: Context) -> None:
    operations.complete(
        name="Wait until nodes, workloads and GPUs are ready",
        without=lambda: [node.name for node in context.nodes if node not in context.present],
        parts=[
            kubernetes.rollout_part(context),
            *metrics.rollout_parts(context),
            *storage.rollout_parts(context),
            *monitoring.rollout_parts(context),
            *logs.rollout_parts(context),
            *gpu_operator.rollout_parts(context),
            *dcgm_exporter.rollout_parts(context),
        ],
        own_pods=_pods(context),
    )
    if sum(node.role == "control_plane" for node in context.nodes) > 1:
        operations.dns_spread(name="Spread CoreDNS over the nodes")


def _pods(context: Context) -> dict[str, list[str]]:
    """Namespace -> how names of pods begin in it that the phases before have applied."""
    settings = context.settings
    namespaces = [
        *("kube-flannel", NAMESPACE, dcgm_exporter.NAMESPACE),
        *(settings.gpu_operator.namespace, settings.monitoring.namespace),
    ]
    system = ["coredns-", "kube-proxy-", f"{SERVER}-", f"{APPROVER}-"]
    return {"kube-system": system, **{name: [""] for name in namespaces}}
