"""An exporter with https, a password, or both is asked with what Prometheus is given.

exporter-toolkit's web configuration: https by `tls_server_config`, 401 without the right password.
That the API server's proxy takes the password's header away: k8s.io/apiserver v0.36.3
pkg/endpoints/filters/authentication.go:89.
"""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError, route
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.monitoring.charts.service_monitors import secrets_needed, server_name
from gpuboot.verify import collector
from gpuboot.verify.collector import MetricsCollector
from gpuboot.verify.exporter_access import ExporterClient
from lab.mirror.keys import CertificateAuthority
from tests.unit.ssh_server import ssh_transport

POD = "10.244.1.7"  # the tests' SSH server connects to 127.0.0.1, whatever the address
PASSWORD = "correct horse: battery"
PAGE = 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1"} 34\n'
TLS, BASIC = {"tls_secret": "dcgm-tls"}, {"basic_auth": "dcgm-web"}


Secrets = dict[str, dict[str, str]]


class Site:
    """A cluster whose Secrets are there, behind an SSH server, with one exporter."""

    def __init__(
        self, transport: Any, secrets: dict[str, dict[str, str]], requests: list[str]
    ) -> None:
        self._transport, self._secrets, self._requests = transport, secrets, requests

    def route(self, address: str, port: int) -> Any:
        return route(self._transport, address, port)

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        if path == "/api/v1/pods":
            meta = {"name": "dcgm-exporter-x", "namespace": "dcgm-exporter", "uid": "1"}
            status = {"phase": "Running", "podIP": POD}
            return {"items": [{"metadata": meta, "spec": {"nodeName": "gpu1"}, "status": status}]}
        self._requests.append(path)
        data = self._secrets[path.removeprefix("/api/v1/namespaces/dcgm-exporter/secrets/")]
        return {"data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}}

    def service(self, *_: Any) -> str:
        return ""


class Exporter(BaseHTTPRequestHandler):
    """exporter-toolkit's handler: 401 where a password is wanted and another one comes."""

    protocol_version = "HTTP/1.1"
    authorization = ""

    def do_GET(self) -> None:
        right = (
            not self.authorization or self.headers.get("Authorization", "") == self.authorization
        )
        body = PAGE.encode() if right else b"Unauthorized\n"
        self.send_response(200 if right else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def exporter(folder: Path, settings: Settings) -> Iterator[tuple[int, Secrets]]:
    """Its port, and the site's Secrets."""
    secret_data: Secrets = {name: {} for name in secrets_needed(settings.exporter)}

    class Handler(Exporter):
        pass

    if settings.exporter.basic_auth:
        token = base64.b64encode(f"prometheus:{PASSWORD}".encode()).decode()
        Handler.authorization = f"Basic {token}"
        secret_data["dcgm-web"] |= {"username": "prometheus", "password": PASSWORD, "web.yml": "-"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if settings.exporter.tls_secret:
        authority, files = (
            CertificateAuthority.ensure(folder),
            (folder / "tls.crt", folder / "tls.key"),
        )
        authority.issue(server_name(), "127.0.0.2", *files)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*files)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        secret_data["dcgm-tls"]["ca.crt"] = authority.certificate.read_text()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, secret_data
    finally:
        server.shutdown()
        server.server_close()


def settings_of(exporter: dict[str, Any]) -> Settings:
    return parse_settings(
        {"exporter": {"kind": "chart", **exporter}, "monitoring": {"enabled": False}}
    )


@pytest.mark.parametrize("exporter_settings", [TLS, BASIC, {**TLS, **BASIC}])
def test_a_protected_exporter_answers_verification(
    exporter_settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, requests = settings_of(exporter_settings), list[str]()
    with exporter(tmp_path, settings) as (port, secrets), ssh_transport() as transport:
        monkeypatch.setattr(collector, "EXPORTER_PORT", port)
        site = cast(Cluster, Site(transport, secrets, requests))
        [answer] = MetricsCollector(site, settings).exporters()
    assert answer.error == ""
    assert answer.names == {"DCGM_FI_DEV_GPU_TEMP"}
    assert requests  # the site's Secrets, and nothing through the API server's proxy


def refusal(
    settings: Settings, folder: Path, change: Mapping[str, dict[str, str]]
) -> tuple[int, str]:
    with exporter(folder, settings) as (port, secrets), ssh_transport() as transport:
        for name, data in change.items():
            secrets[name] |= data
        site = cast(Cluster, Site(transport, secrets, []))
        with pytest.raises(ClusterError) as error_info:
            ExporterClient(site, settings.exporter).metrics(POD, port)
    return error_info.value.status or 0, str(error_info.value)


def test_a_wrong_password_is_named_and_not_shown(tmp_path: Path) -> None:
    wrong_secrets = {"dcgm-web": {"password": "forgotten"}}
    status, text = refusal(settings_of(BASIC), tmp_path, wrong_secrets)
    assert status == 401
    assert "`username` and `password` of Secret dcgm-web" in text
    assert "forgotten" not in text


def test_another_authority_is_refused_as_prometheus_refuses_it(tmp_path: Path) -> None:
    foreign_ca = CertificateAuthority.ensure(tmp_path / "other").certificate.read_text()
    _, text = refusal(settings_of(TLS), tmp_path, {"dcgm-tls": {"ca.crt": foreign_ca}})
    assert "certificate verify failed" in text


def test_a_ca_that_is_none_is_named(tmp_path: Path) -> None:
    _, text = refusal(settings_of(TLS), tmp_path, {"dcgm-tls": {"ca.crt": "no PEM"}})
    assert "`ca.crt` of exporter.tls_secret holds no certificate" in text


def test_an_exporter_without_protection_is_asked_through_the_api_server() -> None:
    class Proxied(Site):
        def pod(self, namespace: str, name: str, port: int) -> str:
            return f"/pods/{name}"

        def get(self, path: str) -> bytes:
            self._requests.append(path)
            return PAGE.encode()

    requests: list[str] = []
    [answer] = MetricsCollector(
        cast(Cluster, Proxied(None, {}, requests)), settings_of({})
    ).exporters()
    assert (answer.error, requests) == ("", ["/pods/dcgm-exporter-x/metrics"])
