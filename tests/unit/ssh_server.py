"""Servers for the tunnel's tests: an SSH server that forwards, a TLS server that asks for a
certificate, and the certificates."""

from __future__ import annotations

import base64
import datetime
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import paramiko
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from paramiko import common

HOST = "api.cluster.test"  # resolves nowhere: only the certificate knows it


class Forwarding(paramiko.ServerInterface):
    """Lets anyone in, and connects to 127.0.0.1 whatever the name, unless told to refuse."""

    def __init__(self, transport: paramiko.Transport, refuse: bool) -> None:
        self._transport = transport
        self._refuse = refuse

    def check_auth_password(self, username: str, password: str) -> int:
        return common.AUTH_SUCCESSFUL

    def check_channel_direct_tcpip_request(self, chanid: int, origin: Any, destination: Any) -> int:
        if self._refuse:
            return common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        threading.Thread(target=self._serve, args=(destination[1],), daemon=True).start()
        return common.OPEN_SUCCEEDED

    def _serve(self, port: int) -> None:
        channel = None
        # two threads that wait for channels can wake for one: accept() then gives None at once
        while channel is None and self._transport.is_active():
            channel = self._transport.accept(1)
        if channel is None:
            return
        with socket.create_connection(("127.0.0.1", port)) as target:
            back = threading.Thread(target=_copy, args=(target, channel), daemon=True)
            back.start()
            _copy(channel, target)
            with suppress(OSError):  # the target has ended already
                target.shutdown(socket.SHUT_WR)
            back.join(5)
        channel.close()


def _copy(source: Any, sink: Any) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass


@contextmanager
def ssh_transport(refuse: bool = False) -> Iterator[paramiko.Transport]:
    """The client's end of an SSH connection to a server that forwards."""
    near, far = socket.socketpair()
    server = paramiko.Transport(far)
    server.add_server_key(paramiko.ECDSAKey.generate())
    server.start_server(event=threading.Event(), server=Forwarding(server, refuse))
    client = paramiko.Transport(near)
    client.connect(username="root", password="x")
    try:
        yield client
    finally:
        client.close()
        server.close()


class Api(BaseHTTPRequestHandler):
    """Answers with what it was asked and who asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith("/growing"):
            self._grow()
        else:
            self._answer(None)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self._answer(json.loads(self.rfile.read(length)) if length else None)

    do_PUT = do_DELETE = do_POST

    def _grow(self) -> None:
        """Two lines, and then nothing for long."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in (b"one\ntw", b"o\n"):
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        self.wfile.flush()
        self.connection.settimeout(20)
        with suppress(OSError):
            self.rfile.read(1)

    def _answer(self, payload: Any) -> None:
        peer = self.connection.getpeercert()
        subject = dict(part[0] for part in peer["subject"])["commonName"] if peer else ""
        status = 404 if self.path.startswith("/missing") else 200
        text = {"path": self.path, "who": subject, "body": payload, "padding": "x" * 300_000}
        if status == 404:
            text = {"kind": "Status", "message": 'namespaces "x" not found'}
        body = b"no json" if self.path == "/text" else json.dumps(text).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def api_server(folder: Path) -> Iterator[str]:
    """A TLS server that demands a certificate of its CA. Yields the kubeconfig for it."""
    authority_key, authority = _certificate("test CA", None)
    server_key, server_certificate = _certificate(HOST, (authority_key, authority))
    admin_key, admin = _certificate("kubernetes-admin", (authority_key, authority))
    (folder / "server.pem").write_bytes(_pem(server_certificate) + _key(server_key))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=_pem(authority).decode())
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "server.pem")
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    # the handshake belongs to the connection's own thread, not to the one that accepts
    httpd.socket = context.wrap_socket(
        httpd.socket, server_side=True, do_handshake_on_connect=False
    )
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    try:
        yield _kubeconfig(httpd.server_port, _pem(authority), _pem(admin), _key(admin_key))
    finally:
        httpd.shutdown()
        httpd.server_close()


def _kubeconfig(port: int, authority: bytes, certificate: bytes, key: bytes) -> str:
    cluster = {
        "server": f"https://{HOST}:{port}",
        "certificate-authority-data": base64.b64encode(authority).decode(),
    }
    user = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        }
    )


def _certificate(name: str, signer: Any) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signing_key, issuer = signer or (key, None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return key, builder.sign(signing_key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
