"""A dcgm-exporter that speaks https or asks for a password, asked as Prometheus asks it."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import Exporter
from gpuboot.monitoring.charts.service_monitors import EXPORTER_NAMESPACE, server_name

_TIMEOUT = urllib3.Timeout(connect=10, read=20)


@dataclass(frozen=True)
class _Credentials:
    """What the site's Secrets hold. authority: PEM text, "" for plain http."""

    authority: str = field(default="", repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)


class ExporterClient:
    """Asks pods directly, from where the API server is reached.

    The API server's proxy would not do: it takes the password's header for its own and removes it
    (apiserver v0.36.3 pkg/endpoints/filters/authentication.go), and checks no certificate. The
    Secrets are those that Prometheus uses (`charts.exporter_objects`); they stay in memory.
    """

    def __init__(self, cluster: Cluster, exporter: Exporter) -> None:
        self._cluster = cluster
        self._exporter = exporter

    def metrics(self, address: str, port: int) -> str:
        """The page of metrics of the exporter at a pod's address.

        Raises `ClusterError` for a Secret that cannot be used, for no answer and for any status
        but 200.
        """
        credentials = self._credentials
        with self._cluster.route(address, port) as (host, local):
            pool = _pool(host, local, credentials.authority)
            try:
                answer = pool.request("GET", "/metrics", headers=credentials.headers)
            except HTTPError as error:
                reason = getattr(error, "reason", None) or error
                raise ClusterError(f"GET {address}:{port}/metrics: {reason}") from None
            finally:
                pool.close()
        if answer.status == 401:
            raise ClusterError(
                f"GET {address}:{port}/metrics: 401, so `username` and `password` of Secret "
                f"{self._exporter.basic_auth} are not those of its `web.yml`"
                if self._exporter.basic_auth
                else f"GET {address}:{port}/metrics: 401, and exporter.basic_auth is not set",
                401,
            )
        if answer.status != 200:
            raise ClusterError(f"GET {address}:{port}/metrics: {answer.status}", answer.status)
        return str(answer.data.decode())

    @cached_property
    def _credentials(self) -> _Credentials:
        exporter, authority, headers = self._exporter, "", {}
        if exporter.tls_secret:
            authority = self._secret(exporter.tls_secret, "ca.crt")
        if exporter.basic_auth:
            words = [self._secret(exporter.basic_auth, key) for key in ("username", "password")]
            headers = urllib3.make_headers(basic_auth=":".join(words))
        return _Credentials(authority, headers)

    def _secret(self, name: str, key: str) -> str:
        path = f"/api/v1/namespaces/{EXPORTER_NAMESPACE}/secrets/{name}"
        data = self._cluster.json(path).get("data") or {}
        if key not in data:
            raise ClusterError(f"Secret {EXPORTER_NAMESPACE}/{name} has no key {key}")
        return base64.b64decode(data[key]).decode()


def _pool(host: str, port: int, authority: str) -> Any:
    if not authority:
        return urllib3.HTTPConnectionPool(host, port, timeout=_TIMEOUT, retries=False)
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=authority)
    except (ssl.SSLError, ValueError):
        raise ClusterError("`ca.crt` of exporter.tls_secret holds no certificate") from None
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Go, so Prometheus, is not that strict
    return urllib3.HTTPSConnectionPool(
        host,
        port,
        timeout=_TIMEOUT,
        retries=False,
        ssl_context=context,
        server_hostname=server_name(),
        assert_hostname=server_name(),
    )
