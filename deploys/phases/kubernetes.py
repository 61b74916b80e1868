"""Kubernetes by kubeadm: packages, the leader's cluster, its network, the other nodes' joins."""

from functools import partial
from typing import Any

from deploys.engine.operation import phase
from deploys.parts.cluster import operations as kubectl
from deploys.parts.cluster.node_drain import Moving
from deploys.parts.files import operations as files
from deploys.parts.kubeadm import (
    change_operations as kubeadm_changes,
)
from deploys.parts.kubeadm import (
    join_operations as kubeadm_join,
)
from deploys.parts.kubeadm import (
    operations as kubeadm,
)
from deploys.parts.kubeadm import (
    own_object_operations as kubeadm_objects,
)
from deploys.parts.kubeadm import (
    static_pod_operations as static_pods,
)
from deploys.parts.rollout import operations as rollout
from deploys.phases import api_endpoint, backup, certificates, in_force, metrics
from deploys.phases.repositories import add_repository
from deploys.run.context import Context, current, members
from gpuboot.cluster import endpoint as api
from gpuboot.cluster import flannel, readiness
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.kubeadm import (
    Configuration,
    configuration,
    endpoint,
    first_images,
    init_config,
    join_config,
    packages,
    untainted,
    way_to_api,
    worker_images,
)
from gpuboot.cluster.readiness import Part, Progress
from gpuboot.config.inventory import Node
from gpuboot.monitoring.charts.exporter import GPUS_LABEL

_READY_S = 600
_REMEDY = "see `journalctl -u kubelet` on a node that is not Ready"


@phase("Kubernetes")
def kubernetes() -> None:
    """Make a cluster on the leader, and join all other nodes; `rollout` waits for them."""
    context = current()
    node, lock = context.node, context.lock
    config = configuration(context.settings, lock, context.nodes)
    kubeadm.images_fetched(name="Start pulling images", images=first_images(lock, node))
    packages_and_config(context, config)
    api_endpoint.reached(context)
    kubeadm.images_pulled(
        name="Pull the images of Kubernetes",
        images=worker_images(lock),
        config=kubeadm.CONFIG if node.leader else "",
    )
    backup.prepared(context)
    certificates.renewed(context, control_planes(context))
    if node.leader:
        _initialize(context, config)
    kubelet_digest = _reconfigure(context, config)
    in_force.compared(context, config, kubelet_digest)
    certificates.cover_virtual_address(context)
    if node.leader:
        # after an upgrade, which renews the certificate in it
        kubeadm.kubeconfig(name="Write root's kubeconfig")
    if node.role == "control_plane" and not node.leader:
        _join(
            context,
            "Join the other control-plane nodes (kubeadm join)",
            kubelet_digest,
            _serial=True,
        )
        api_endpoint.served(context)
        kubeadm.kubeconfig(name="Write root's kubeconfig on the other control-plane nodes")
    if node.role == "worker":
        api_endpoint.wait_for_virtual_address(context)
        _join(context, "Join the workers (kubeadm join)", kubelet_digest)
    api_endpoint.settle_address(context)
    backup.take_first_backup(context)
    if node.leader:
        _label(context)


def _initialize(context: Context, config: Configuration) -> None:
    """Make the leader's control plane, and the pod network."""
    kubeadm.initialized(
        name="Initialize the control plane (kubeadm init)",
        digest=config.digest,
        kubelet=config.digest,
    )
    # nothing else can tell or change anything while the API server has no manifest
    _keep_static_pods(context, config, "Put back what the API server runs by")
    rollout.api_answers(name="Wait for the API server")
    kubeadm_changes.immutable_settings_kept(
        name="Check settings that a cluster cannot change", settings=config.immutable
    )
    kubectl.applied(
        name="Install the pod network (flannel)",
        manifest=flannel.manifest(
            context.settings,
            context.lock,
            endpoint(context.settings.cluster, context.nodes),
            way_to_api(context.settings.cluster, context.nodes),
        ),
        sentinel_workload="kube-flannel-ds",
    )
    metrics.certificates_approved(context)


def _join(context: Context, title: str, kubelet: str, **arguments: Any) -> None:
    settings, nodes = context.settings, context.nodes
    kubeadm_join.joined(
        name=title,
        node=context.node,
        leader=context.leader.host,
        kubelet=kubelet,
        join_config=partial(join_config, settings, nodes, context.node),
        init_config=partial(init_config, settings, context.lock, nodes),
        **arguments,
    )


def _label(context: Context) -> None:
    kubectl.labels_and_taints(
        name="Label and taint the nodes",
        labels={item.name: labels(item) for item in context.present},
        tainted={
            item.name: not untainted(context.settings.cluster, context.nodes)
            for item in context.nodes
            if item.role == "control_plane"
        },
    )


def rollout_part(context: Context) -> Part:
    """The part of the rollout: all nodes Ready, with the pod network and DNS."""

    def look(state: ClusterState) -> Progress:
        return readiness.network_ready(state, [item.name for item in context.present])

    return Part(look, _READY_S, _REMEDY)


def workload_node(context: Context) -> Part:
    """A node that takes pods."""
    names = [node.name for node in _workload_nodes(context)]
    return Part(lambda state: readiness.any_ready(state, names), _READY_S, _REMEDY)


def _workload_nodes(context: Context) -> list[Node]:
    anywhere = untainted(context.settings.cluster, context.nodes)
    return [node for node in context.nodes if anywhere or node.role == "worker"]


def labels(node: Node) -> dict[str, str | None]:
    """The labels that a node must have; None: must not have."""
    return {
        "node-role.kubernetes.io/worker": "" if node.role == "worker" else None,
        GPUS_LABEL: str(node.gpus) if node.gpus else None,
    }


def packages_and_config(context: Context, config: Configuration) -> None:
    """What a host needs before kubeadm runs on it; on the leader kubeadm's configuration as well.

    + config: of the cluster
    """
    lock = context.lock
    add_repository(context, "kubernetes")
    kubeadm.installed(
        name=f"Install kubelet, kubeadm and kubectl {lock.kubernetes.version}",
        packages=packages(lock),
        manager=context.platform.package_manager,
    )
    if context.node.leader:
        files.present(
            name="Write kubeadm's configuration",
            contents={kubeadm.CONFIG: config.text},
            mode="600",
        )


def moving(context: Context) -> Moving:
    """What becomes of a node's pods while it is upgraded."""
    upgrade = context.settings.upgrade
    other_nodes = [item for item in _workload_nodes(context) if item != context.node]
    return Moving(
        # where no other node takes pods they could go nowhere
        upgrade.drain if other_nodes else "never",
        upgrade.drain_timeout_s,
        upgrade.drain_empty_dirs,
        upgrade.drain_unmanaged,
    )


def control_planes(context: Context) -> list[str]:
    """The control planes with a member of etcd, and those that cannot be reached."""
    reached_hosts = [item.host for item in context.nodes if item.host in context.states]
    joining = set(reached_hosts) - set(members(context.states))
    return [item.host for item in api.control_planes(context.nodes) if item.host not in joining]


def _reconfigure(context: Context, config: Configuration) -> str:
    """Apply settings that changed since the cluster was made; the digest of this host's part."""
    node = context.node
    if node.leader:
        kubeadm_changes.reconfigured(
            name="Reconfigure the control plane",
            digest=config.digest,
            kubelet=config.kubelet,
        )
        kubeadm_objects.as_made(name="Keep kubeadm's objects as it makes them")
    controls = node.role == "control_plane"
    digest = config.digest if controls else config.kubelet
    kubeadm_changes.kubelet_configured(
        name="Reconfigure the nodes",
        node=node.name,
        leader=context.leader.host,
        digest=digest,
        control_plane=controls and not node.leader,
        # clusters of one control plane had that of the kubelet noted there
        also=config.kubelet if node.leader else "",
        ignore=context.settings.cluster.ignore_preflight_errors,
        signed=context.settings.cluster.metrics_server,
        _serial=True,
    )
    if controls:
        title = "Keep static pods as kubeadm makes them"
        _keep_static_pods(context, config, title, _serial=True)
    return digest


def _keep_static_pods(
    context: Context, config: Configuration, title: str, **arguments: Any
) -> None:
    static_pods.as_made(
        name=title,
        node=context.node.name,
        leader=context.leader.host,
        digest=config.digest,
        version=context.lock.kubernetes.version,
        config=init_config(context.settings, context.lock, context.nodes, node=context.node),
        **arguments,
    )
