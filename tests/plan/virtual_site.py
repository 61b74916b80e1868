"""What a site with a virtual address answers, beside what every site does."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from gpuboot.cluster import virtual_address
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Cluster
from gpuboot.hosts.node_state import NodeState


def keepalived(cluster: Cluster, nodes: Sequence[Node]) -> str:
    """The first control plane's configuration."""
    state = SimpleNamespace(interfaces=(("eth0", f"{nodes[0].address}/24"),))
    return virtual_address.keepalived(cluster, nodes[0], nodes, cast(NodeState, state))


def machine(address: str) -> list[str]:
    """Lines of the compound fact of the control plane that holds the address."""
    address_lines = ["keepalived\tours", f"virtual_address\t{address}"]
    return [f"address\teth0 {address}/32", *address_lines]


def certificate(address: str) -> str:
    """The line of the fact of kubeadm about the certificate of its API server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    start = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1).not_valid_before(start)
    builder = builder.not_valid_after(start + datetime.timedelta(days=365))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    text = base64.b64encode(signed.public_bytes(Encoding.DER)).decode()
    return f"certificate\t/etc/kubernetes/pki/apiserver.crt {text}"
