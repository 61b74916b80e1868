"""Upgrades of nodes in use: driver, fabric manager, toolkit, containerd and kubelet."""

from functools import partial
from itertools import product

from deploys.engine import planned_drains
from deploys.engine.operation import loop, phase
from deploys.parts.kubeadm.kubelet_upgrade import KubeletPart
from deploys.parts.nodes import operations as node_upgrade
from deploys.parts.nodes.node_parts import DriverPart, Parts
from deploys.parts.nodes.node_service import Proof
from deploys.parts.nodes.node_sharing import Sharing
from deploys.parts.verify import operations as verify
from deploys.phases import drivers, gpu_operator, runtime
from deploys.phases import node_software as parts
from deploys.phases.kubernetes import control_planes, moving
from deploys.phases.repositories import add_repository
from deploys.run.context import Context, current
from gpuboot.cluster.helm_releases import ROLLOUT_S
from gpuboot.cluster.kubeadm import packages
from gpuboot.config.settings.upgrade import batches
from gpuboot.hosts import driver_packages, gpu_sharing
from gpuboot.hosts.gpu_sharing import Offer

# Names of the operation for a title, each with whether nodes that an earlier run has begun are
# meant. Those are away already, so no other may be begun before they are back.
_NAMES = {
    "Go on with {} whose upgrade was begun": True,
    "Upgrade {}: driver, container toolkit, containerd, kubelet": False,
}


@phase("Node upgrades")
def node_upgrades(kubelets: bool = True) -> None:
    """Upgrade nodes of a living cluster one after the other, and prove each before it serves again.

    All that a node has to be drained for comes in one stay.

    Hosts that are in no cluster get all of this at once, by the phases that follow. All others take
    part in all operations: pyinfra orders operations of different hosts only by those they share.
    """
    context = current()
    settings, node = context.settings, context.node
    if not parts.is_node(context):
        return
    _prepare(context)
    workers = [item for item in context.nodes if item.role == "worker"]
    turns = [
        (batch.title, node in batch.nodes, batch.max_parallel)
        for batch in batches(settings.upgrade.max_unavailable, workers)
    ]
    # last, when what they bring is proven elsewhere
    turns.append(("the control planes", node.role == "control_plane", 1))
    for (title, turn, max_hosts), (name, resuming) in loop(product(turns, _NAMES.items())):
        node_upgrade.upgraded(
            name=name.format(title),
            node=node.name,
            leader=context.leader.host,
            parts=_parts(context, kubelets),
            manager=context.platform.package_manager,
            turn=turn,
            resuming=resuming,
            max_hosts=max_hosts,
            control_planes=control_planes(context) if node.role == "control_plane" else (),
            moving=moving(context),
            proof=_proof(context),
            is_gated=settings.gate.enabled and bool(node.gpus),
            shares=_sharing(context),
        )
    if node.leader:
        node_upgrade.all_proven(name="Go on if all upgraded nodes are proven")


def _proof(context: Context) -> Proof | None:
    if not context.node.gpus:
        return None
    settings, leader = context.settings, context.leader.host
    return partial(
        verify.prove_node, settings, context.lock, context.node, leader, offer=_shares(context)
    )


def _sharing(context: Context) -> Sharing | None:
    offer = _shares(context)
    return Sharing(offer, ROLLOUT_S) if offer else None


def _shares(context: Context) -> Offer | None:
    if not (context.node.gpus and context.settings.gpu_operator.enabled):
        return None
    state = context.state
    return gpu_sharing.offer(context.node, context.settings, state.gpu_ids, state.mig_profiles)


def _prepare(context: Context) -> None:
    """What nodes need before: repositories, and the GPU Operator's new ways of sharing."""
    if parts.upgraded_as_node(context):
        _repositories(context)
    if planned_drains.sharing:
        gpu_operator.deployed(context)


def _repositories(context: Context) -> None:
    if parts.driver_version(context):
        add_repository(context, "cuda")
    add_repository(context, "docker")
    if context.node.gpus:
        add_repository(context, "toolkit")


def _parts(context: Context, kubelets: bool) -> Parts:
    return Parts(
        containerd=parts.containerd(context),
        configuration=runtime.containerd_configuration(context),
        toolkit=parts.toolkit(context),
        driver=_driver(context),
        kubelet=_kubelet(context) if kubelets else None,
    )


def _kubelet(context: Context) -> KubeletPart:
    return KubeletPart(
        version=context.lock.kubernetes.version,
        packages=packages(context.lock),
        control_plane=context.node.role == "control_plane",
        ignore=context.settings.cluster.ignore_preflight_errors,
    )


def _driver(context: Context) -> DriverPart | None:
    version, settings = parts.driver_version(context), context.settings.driver
    if not version:
        return None
    by_stream = context.platform.package_manager == "dnf"
    return DriverPart(
        version=version,
        packages=parts.driver(context),
        companions=drivers.companion_packages(context),
        pin="" if by_stream else driver_packages.pinning_package(version),
        stream=driver_packages.module_stream(version, parts.flavour(context)) if by_stream else "",
        services=drivers.services(context),
        may_reboot=settings.reboot == "when-needed",
        reboot_s=settings.reboot_timeout_s,
    )
