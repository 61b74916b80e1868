"""MIG: who divides the GPUs into instances."""

from collections.abc import Iterable, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts import gpu_sharing
from gpuboot.hosts.node_state import NodeState


def warnings(
    nodes: Iterable[Node], states: Mapping[str, NodeState], settings: Settings
) -> list[str]:
    """A line for each machine whose MIG instances do not outlive its coming into the cluster.

    The operator gives a node that can do MIG and has no layout by label the label
    `nvidia.com/mig.config=all-disabled`, and its MIG manager carries that out (gpu-operator
    v26.7.0, controllers/nodelabeling_controller.go:306; `migManager.config.default`). A machine
    that is in the cluster already has its label.
    """
    operator = settings.gpu_operator
    if not (operator.enabled and operator.mig_manager):
        return []
    lines = []
    for node in nodes:
        state = states.get(node.host)
        share = gpu_sharing.of(node, settings)
        if node.role == "docker" or (share and share.mig):
            continue  # nobody divides its GPUs, or the settings say how
        if state and state.mig_instances and not state.cluster_ca:
            lines.append(
                f"[{node.host}] its GPUs are divided into {state.mig_instances} MIG instances, "
                "which the GPU Operator's MIG manager removes; remedy: gpu_operator.mig_manager = "
                "False keeps them, or name their layout in sharing (docs/sharing.md)"
            )
    return lines
