"""How nodes reach the API servers, as part of the phase that makes these."""

from deploys.parts.api_endpoint import operations as api_endpoint
from deploys.parts.api_endpoint import virtual_address_operations as operations
from deploys.run.context import Context
from gpuboot.cluster import endpoint as api
from gpuboot.cluster import virtual_address
from gpuboot.cluster.kubeadm import balanced

_JOINED = "/etc/kubernetes/kubelet.conf"


def reached(context: Context) -> None:
    """The API's name, and what is behind it: the virtual address, or load balancers on nodes."""
    cluster, nodes, node = context.settings.cluster, context.nodes, context.node
    # without a peer's address its adverts would not count, and both would take the virtual one
    if _has_virtual_address(context) and virtual_address.peers_known(nodes):
        operations.present(
            name="Run what holds the API's virtual address (keepalived)",
            config=virtual_address.keepalived(cluster, node, nodes, context.state),
            unit_file=virtual_address.unit_file(),
            manager=context.platform.package_manager,
        )
    if balanced(cluster, nodes) and node.role == "worker":
        api_endpoint.balanced(
            name="Run the load balancer before the API servers (haproxy)",
            config=api.load_balancer(nodes),
            manager=context.platform.package_manager,
        )
    if api.is_ours(cluster):
        address = api.address(cluster, node, nodes, context.is_member)
        api_endpoint.resolvable(
            name="Write the API's name to /etc/hosts",
            address=address,
            template=context.state.boot.hosts_template,
            # one that is about to join waits when the control plane has been made
            wait=address == cluster.virtual_ip and _JOINED in context.state.kubeconfigs,
        )
    if context.state.load_balancer == "ours" and not (
        balanced(cluster, nodes) and node.role == "worker"
    ):
        api_endpoint.unbalanced(name="Stop the load balancer before the API servers (haproxy)")


def _has_virtual_address(context: Context) -> bool:
    """Whether the current host is one of those that may hold it."""
    cluster = context.settings.cluster
    is_configured = cluster.virtual_ip is not None and api.is_ours(cluster)
    return is_configured and context.node.role == "control_plane"


def served(context: Context) -> None:
    """The API's name on a control plane that has joined: itself."""
    if api.is_ours(context.settings.cluster):
        api_endpoint.resolvable(
            name="Point the API's name at the other control-plane nodes themselves",
            address=context.node.address,
            template=context.state.boot.hosts_template,
        )


def wait_for_virtual_address(context: Context) -> None:
    """An API server at the virtual address, for a worker that is about to join."""
    cluster = context.settings.cluster
    if cluster.virtual_ip and api.is_ours(cluster):
        operations.answers(name="Wait for the API's virtual address", address=cluster.virtual_ip)


def settle_address(context: Context) -> None:
    """The virtual address when all nodes reach the API as they shall: on one machine, or gone."""
    cluster, state = context.settings.cluster, context.state
    if state.virtual_address and not _has_virtual_address(context):
        operations.absent(name="Take the API's virtual address away (keepalived)")
    if cluster.virtual_ip and context.node.leader and _has_virtual_address(context):
        _held_once(context, cluster.virtual_ip)


def _held_once(context: Context, address: str) -> None:
    controls = [node.host for node in api.control_planes(context.nodes)]
    present = {node.host: context.states[node.host] for node in context.present}
    if not set(controls) <= set(present):
        return  # one that cannot be reached may have it
    operations.single_holder(
        name="Check that one control plane has the API's virtual address",
        address=address,
        control_planes=controls,
        settled=virtual_address.settled(context.settings.cluster, context.nodes, present),
        before=virtual_address.holders(address, present),
    )
