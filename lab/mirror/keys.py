"""The lab's own keys: OpenPGP keys that sign apt repositories, and a certificate authority.

They are made once per cache and worth nothing outside the lab.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpuboot.mirror.signing import Home


@dataclass(frozen=True)
class SigningKey:
    """An OpenPGP key pair in a GnuPG home folder of its own."""

    home: Path
    uid: str

    @classmethod
    def ensure(cls, home: Path, uid: str) -> SigningKey:
        """Return the key in `home`; make it when the folder has none. `uid`: its user id."""
        key = cls(home, uid)
        if not (home / "public.asc").exists():
            home.mkdir(parents=True, exist_ok=True)
            home.chmod(0o700)
            with key._exclusive_home() as gpg:
                if not (home / "public.asc").exists():
                    make = ("--quick-generate-key", uid, "rsa3072", "sign", "0")
                    gpg.run("--passphrase", "", *make)
                    _write(home / "public.asc", gpg.public())
        return key

    def public(self, armor: bool = True) -> bytes:
        """The public key: ASCII-armoured as vendors publish it, or binary as a keyring."""
        if armor:
            return (self.home / "public.asc").read_bytes()
        with self._exclusive_home() as gpg:
            return gpg.run("--export")

    def detached(self, content: bytes) -> bytes:
        """An armoured detached signature of `content`."""
        with self._exclusive_home() as gpg:
            return gpg.detached(content)

    def clearsigned(self, content: bytes) -> bytes:
        """`content` with an inline signature."""
        with self._exclusive_home() as gpg:
            return gpg.clearsigned(content)

    @contextlib.contextmanager
    def _exclusive_home(self) -> Iterator[Home]:
        # one at a time: two labs that come up together would end each other's agent
        gpg = Home(self.home)
        with _locked(self.home), gpg.agent():
            yield gpg


@dataclass(frozen=True)
class CertificateAuthority:
    """The lab's certificate authority."""

    certificate: Path
    key: Path

    @classmethod
    def ensure(cls, folder: Path) -> CertificateAuthority:
        """Return the authority in `folder`; make it when the folder has none."""
        authority = cls(folder / "ca.crt", folder / "ca.key")
        if not authority.certificate.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                authority._make()
        return authority

    def _make(self) -> None:
        if not self.certificate.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            name = _name("gpuboot lab CA")
            usage = x509.KeyUsage(
                key_cert_sign=True, crl_sign=True, digital_signature=False,
                content_commitment=False, key_encipherment=False, data_encipherment=False,
                key_agreement=False, encipher_only=False, decipher_only=False,
            )  # fmt: skip
            certificate = (
                _certificate(name, name, key.public_key())
                .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                .add_extension(usage, critical=True)
                .sign(key, hashes.SHA256())
            )
            _write_key(self.key, key)
            _write(self.certificate, certificate.public_bytes(_PEM))

    def issue(self, host: str, address: str, certificate: Path, key: Path) -> None:
        """Write a server certificate for `host` and the IP `address`, and its private key."""
        private = ec.generate_private_key(ec.SECP256R1())
        ca = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        ca_key = serialization.load_pem_private_key(self.key.read_bytes(), password=None)
        assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
        ip = x509.IPAddress(ipaddress.ip_address(address))
        names = x509.SubjectAlternativeName([x509.DNSName(host), ip])
        server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        issued = (
            _certificate(_name(host), ca.subject, private.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(server, critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        _write_key(key, private)
        _write(certificate, issued.public_bytes(_PEM))


_PEM = serialization.Encoding.PEM


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder of keys against other labs that come up on this host."""
    with (folder / ".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: what exists is taken for finished."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    form = serialization.PrivateFormat.PKCS8
    content = key.private_bytes(_PEM, form, serialization.NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(content)
