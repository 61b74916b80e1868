"""When the certificates of a node expire, and which of them kubeadm renews."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

DAY_S = 86400
RENEWAL_DAYS = 30  # of the year that they last
# what `kubeadm certs renew all` renews (kubeadm v1.36, certs/renewal/manager.go)
_RENEWABLE = (
    *("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf"),
    *("pki/apiserver.crt", "pki/apiserver-kubelet-client.crt", "pki/apiserver-etcd-client.crt"),
    *("pki/front-proxy-client.crt", "pki/etcd/server.crt", "pki/etcd/peer.crt"),
    "pki/etcd/healthcheck-client.crt",
)


SERVING = "pki/apiserver.crt"  # what an API server shows to clients


@dataclass(frozen=True)
class Certificate:
    """A certificate of a node.

    + name: path of its file, below /etc/kubernetes where it is there
    + expires: seconds since 1970
    + names: names and addresses that it is for
    """

    name: str
    expires: float
    names: tuple[str, ...] = ()

    @property
    def renewable(self) -> bool:
        """Whether `kubeadm certs renew all` renews it: not an authority's, nor a kubelet's."""
        return self.name in _RENEWABLE

    def __str__(self) -> str:
        return f"{self.name} ({datetime.fromtimestamp(self.expires, UTC):%Y-%m-%d})"


def parse(rows: Iterable[Sequence[str]]) -> tuple[Certificate, ...]:
    """The certificates in rows of a path and base64: of DER, or of PEM as kubeconfigs have it.

    Raises ValueError for what is no certificate.
    """
    certificates = []
    for path, text in rows:
        data = base64.b64decode(text)
        pem = data.lstrip().startswith(b"-----")
        read = x509.load_pem_x509_certificate if pem else x509.load_der_x509_certificate
        certificate = read(data)
        name = path.removeprefix("/etc/kubernetes/")
        expires = certificate.not_valid_after_utc.timestamp()
        certificates.append(Certificate(name, expires, _names(certificate)))
    return tuple(certificates)


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        alternative_names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except x509.ExtensionNotFound:
        return ()
    addresses = map(str, alternative_names.get_values_for_type(x509.IPAddress))
    return (*alternative_names.get_values_for_type(x509.DNSName), *addresses)


def due(certificates: Iterable[Certificate], now: float, days: int) -> list[Certificate]:
    """The certificates that kubeadm renews and that expire within some days, the earliest first.

    + now: seconds since 1970
    """
    soon = [item for item in certificates if item.renewable and item.expires < now + days * DAY_S]
    return sorted(soon, key=lambda item: item.expires)


def expired(certificates: Iterable[Certificate], now: float) -> list[Certificate]:
    """The certificates that are not valid any more."""
    return [item for item in certificates if item.expires <= now]
