"""What a node proves itself with, and its cluster, when it joins: bootstrap tokens and CA pins."""

import hashlib
import json
import secrets
import string
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_TOKEN_ALPHABET = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class BootstrapToken:
    """The credential one node joins with. `secret` never appears in a repr."""

    id: str
    secret: str = field(repr=False)

    @property
    def value(self) -> str:
        """What kubeadm calls the token."""
        return f"{self.id}.{self.secret}"


def new_token() -> BootstrapToken:
    """A fresh token in the form that Kubernetes asks for: 6 and 16 characters of [a-z0-9]."""
    draw = ["".join(secrets.choice(_TOKEN_ALPHABET) for _ in range(n)) for n in (6, 16)]
    return BootstrapToken(draw[0], draw[1])


def token_manifest(token: BootstrapToken, node: str, now: datetime, minutes: int = 30) -> str:
    """The Secret that makes a bootstrap token valid for a while. The result is secret.

    + node: name of the node it is for, in the description
    + now: present time, with its time zone
    """
    data = {
        "token-id": token.id,
        "token-secret": token.secret,
        "description": f"gpuboot: {node} joins",
        "expiration": (now + timedelta(minutes=minutes)).isoformat(timespec="seconds"),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{token.id}", "namespace": "kube-system"},
        "stringData": data,
    }
    return json.dumps(manifest)


def ca_hash(pem: str) -> str:
    """kubeadm's pin of a certificate authority: `sha256:` and the digest of its public key.

    + pem: the CA certificate; raises ValueError when it is none
    """
    key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(der).hexdigest()}"
