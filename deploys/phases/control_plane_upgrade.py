"""Newer releases of Kubernetes on the control planes of a living cluster, before any kubelet."""

from typing import Any

from deploys.engine.operation import loop, phase
from deploys.parts.kubeadm import upgrade_operations as kubeadm_upgrade
from deploys.phases import node_software as parts
from deploys.phases import runtime
from deploys.phases.kubernetes import control_planes
from deploys.run.context import current
from gpuboot.cluster.kubeadm import packages


@phase("Control plane upgrade")
def control_plane_upgrade() -> None:
    """The leader's control plane, then the others', one at a time; pods notice nothing.

    No kubelet may be newer than an API server, so this comes before the nodes' own upgrades. All
    hosts take part in both operations: pyinfra orders operations of different hosts only by those
    they share.
    """
    context = current()
    if not parts.is_node(context):
        return
    node, lock = context.node, context.lock
    controls = node.role == "control_plane"
    if controls:
        runtime.mirrors(context)  # kubeadm pulls images
    version = lock.kubernetes.version
    turns: tuple[tuple[str, bool, dict[str, Any]], ...] = (
        ("the leader to Kubernetes {} (kubeadm upgrade apply)", node.leader, {}),
        (
            "the other control planes to Kubernetes {} (kubeadm upgrade node)",
            controls and not node.leader,
            {"_serial": True},
        ),
    )
    for place, (title, turn, arguments) in loop(enumerate(turns)):
        kubeadm_upgrade.upgraded(
            name=f"Upgrade {title.format(version)}",
            node=node.name,
            leader=context.leader.host,
            version=version,
            kubeadm=packages(lock)["kubeadm"],
            manager=context.platform.package_manager,
            leads=place == 0,
            turn=turn,
            control_planes=control_planes(context) if controls else (),
            ignore=context.settings.cluster.ignore_preflight_errors,
            **arguments,
        )
