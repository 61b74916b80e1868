"""The control planes' certificates, as part of the phase that makes them."""

from collections.abc import Sequence

from deploys.parts.kubeadm import certificate_operations as certificates
from deploys.run.context import Context
from gpuboot.cluster.kubeadm import init_config
from gpuboot.cluster.node_certificates import RENEWAL_DAYS
from gpuboot.config.inventory import led


def renewed(context: Context, control_planes: Sequence[str]) -> None:
    """Renew certificates that expire soon or have expired, before anything needs an API server.

    + control_planes: inventory names of those with a member of etcd
    """
    if context.node.role == "control_plane":
        certificates.renewed(
            name="Renew certificates that expire soon (kubeadm certs renew)",
            days=RENEWAL_DAYS,
            control_planes=control_planes,
            _serial=True,
        )


def cover_virtual_address(context: Context) -> None:
    """The virtual address in the API servers' certificates, by which clients outside reach them."""
    cluster, node = context.settings.cluster, context.node
    if cluster.virtual_ip and node.role == "control_plane":
        certified_nodes = led(context.nodes, [node.host])
        certificates.address_covered(
            name="Make the API server's certificate for the virtual address as well",
            address=cluster.virtual_ip,
            config=init_config(context.settings, context.lock, certified_nodes),
        )
