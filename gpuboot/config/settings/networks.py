"""Checks the networks of pods and Services as kubeadm does.

`ValidatePodSubnetNodeMask`, `ValidateServiceSubnetSize` and `ValidateIPNetFromString` in
Kubernetes v1.36.3, cmd/kubeadm/app/apis/kubeadm/validation/validation.go.
"""

from ipaddress import IPv4Network, IPv6Network

Network = IPv4Network | IPv6Network

# what the controller manager gives each node, by IP version
NODE_PREFIX = {4: 24, 6: 64}
_NODES_BITS = 16
_SERVICES_BITS = 20
_LEAST_SERVICES = 10


def network_conflict(pods: Network, services: Network) -> str:
    """Why kubeadm refuses these networks; "" when it takes them."""
    if pods.version != services.version:
        return "cluster.pod_cidr and cluster.service_cidr are of different IP versions"
    node = NODE_PREFIX[pods.version]
    if not node - _NODES_BITS <= pods.prefixlen <= node:
        return (
            f"cluster.pod_cidr {pods}: kubeadm takes /{node - _NODES_BITS} to /{node}, since each "
            f"node gets a /{node} of it"
        )
    largest = services.max_prefixlen - _SERVICES_BITS
    if services.prefixlen < largest:
        return f"cluster.service_cidr {services} is too large: kubeadm takes /{largest} or smaller"
    if services.num_addresses < _LEAST_SERVICES:
        return f"cluster.service_cidr {services} is too small: it needs {_LEAST_SERVICES} addresses"
    return ""
