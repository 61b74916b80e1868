"""NVIDIA's GPU Operator on hosts that have driver and container toolkit already."""

from dataclasses import replace
from functools import partial
from typing import Any

from deploys.engine import planned_drains
from deploys.engine.operation import phase
from deploys.parts.cluster import operations as kubectl
from deploys.parts.nodes import sharing_operations as sharing
from deploys.parts.nodes.node_sharing import Turn
from deploys.parts.verify import operations as verify
from deploys.phases.helm import deploy_chart
from deploys.phases.kubernetes import moving
from deploys.run.context import Context, current
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.helm_releases import ROLLOUT_S
from gpuboot.cluster.readiness import Part, Progress, operator_ready
from gpuboot.config.inventory import Node
from gpuboot.hosts.gpu_sharing import Offer
from gpuboot.monitoring.charts.exporter import rollout_s
from gpuboot.monitoring.charts.gpu_operator_values import expected_gpus, operands, operator_values
from gpuboot.monitoring.charts.operator_daemonsets import expected_operands
from gpuboot.monitoring.charts.sharing_values import PLUGIN_CONFIGS

_PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}  # operands mount host paths


@phase("GPU Operator")
def gpu_operator() -> None:
    """Install gpu-operator, which makes every GPU node offer exactly its GPUs."""
    if not planned_drains.sharing:
        deployed(current())


def deployed(context: Context) -> None:
    """Deploy the release; before nodes are upgraded if these come to share GPUs otherwise then."""
    settings = context.settings.gpu_operator
    if not (context.node.leader and settings.enabled):
        return
    kubectl.namespace(name="Create the namespace", namespace=settings.namespace, labels=_PRIVILEGED)
    values = operator_values(context.settings, context.lock)
    # a node's label goes on naming an earlier configuration until the node is drained
    deploy_chart("gpu-operator", "gpu-operator", settings.namespace, values, PLUGIN_CONFIGS)


@phase("GPU sharing")
def gpu_sharing() -> None:
    """Have nodes divide and share their GPUs as the settings say, each drained before."""
    context = current()
    settings = context.settings
    if not (context.node.leader and settings.gpu_operator.enabled):
        return
    required_operands = operands(settings, context.lock, _gpu_nodes(context))
    made_of = expected_operands(settings, context.lock)
    namespace = settings.gpu_operator.namespace
    sharing.applied(
        name="Share GPUs by MIG layouts, time-slicing and MPS",
        nodes=_turns(context),
        look=lambda state: operator_ready(state, namespace, required_operands, {}, made_of),
        timeout_s=ROLLOUT_S,
    )


def _turns(context: Context) -> list[Turn]:
    offers, leader = _offers(context), context.leader.host
    return [
        Turn(
            node=node.name,
            host=node.host,
            offer=offers[node.name],
            moved=partial(_moved, context, node),
            proof=partial(verify.prove_node, context.settings, context.lock, node, leader),
        )
        for node in context.present
        if node.gpus
    ]


def _moved(context: Context, node: Node) -> dict[str, Any]:
    """How the pods of a node are moved away, as for an upgrade of it."""
    policy = moving(replace(context, node=node))
    return {} if policy.drain == "never" else policy.moved()


def _offers(context: Context) -> dict[str, Offer]:
    devices = {name: state.gpu_ids for name, state in context.states.items()}
    drivers = {name: state.mig_profiles for name, state in context.states.items()}
    return expected_gpus(context.present, context.settings, devices, drivers)


def rollout_parts(context: Context) -> list[Part]:
    """The operator's operands as the values have them, its ClusterPolicy, and all GPUs on offer."""
    settings = context.settings
    if not settings.gpu_operator.enabled:
        return []
    namespace = settings.gpu_operator.namespace
    made_of = expected_operands(settings, context.lock)

    def look(state: ClusterState) -> Progress:
        required_operands = operands(settings, context.lock, _gpu_nodes(context))
        return operator_ready(state, namespace, required_operands, _offers(context), made_of)

    return [
        Part(
            look,
            rollout_s(_gpu_nodes(context)),
            f"see `kubectl -n {namespace} get pods` and the logs of what is not ready; a node that"
            " offers too few GPUs: `nvidia-smi` on it, then `kubectl describe node`",
        )
    ]


def _gpu_nodes(context: Context) -> int:
    return sum(bool(node.gpus) for node in context.present)
