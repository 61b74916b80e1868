"""Kubernetes through its API server, and by the server's proxy whatever runs behind it.

Plain HTTPS through one TLS connection pool: the `kubernetes` package takes half a second to be
imported. The way there is a port of `gpuboot.cluster.tunnel`, or the server itself where it can
be reached.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode, urlsplit

import urllib3
import yaml
from urllib3.exceptions import HTTPError, ReadTimeoutError

from gpuboot.cluster.line_stream import Lines
from gpuboot.cluster.tunnel import TunnelError, forward

if TYPE_CHECKING:
    from paramiko import Transport

_TIMEOUT = urllib3.Timeout(connect=10, read=20)
_BEHIND = re.compile(r"/(proxy/.*|log)$")  # what a pod or a kubelet answers, not the server itself
_WAITED = re.compile(r"read timeout=([0-9.]+)")  # as urllib3 words it


class _Retry(urllib3.Retry):
    """Tries again, but not where a node or pod keeps silent behind the server's proxy: it is down,
    and each further try would take the whole time-out.
    """

    def increment(
        self, method: str | None = None, url: str | None = None, response: Any = None,
        error: Exception | None = None, *args: Any, **options: Any,
    ) -> Self:  # fmt: skip
        if isinstance(error, ReadTimeoutError) and _BEHIND.search(url or ""):
            raise error
        return super().increment(method, url, response, error, *args, **options)


class ClusterError(RuntimeError):
    """The API server, or what is behind its proxy, gave no usable answer. `status`: HTTP's."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Access:
    """What a kubeconfig holds: where the server is, its CA, and who we are (PEM texts)."""

    host: str
    port: int
    authority: str
    certificate: str
    key: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Access({self.host}:{self.port})"  # never the key


def read_kubeconfig(text: str) -> Access:
    """The access that a kubeconfig's current context gives.

    + text: the kubeconfig, with its certificates inside, as kubeadm writes admin.conf

    Raises `ClusterError` for a text that is no such kubeconfig.
    """
    try:
        data = yaml.safe_load(text)
        context = _find_by_name(data["contexts"], data["current-context"])["context"]
        cluster = _find_by_name(data["clusters"], context["cluster"])["cluster"]
        user = _find_by_name(data["users"], context["user"])["user"]
        server = urlsplit(cluster["server"])
        return Access(
            server.hostname or "",
            server.port or 443,
            _pem(cluster, "certificate-authority-data"),
            _pem(user, "client-certificate-data"),
            _pem(user, "client-key-data"),
            str(user.get("token", "")),
        )
    except (KeyError, TypeError, ValueError, StopIteration, yaml.YAMLError) as error:
        raise ClusterError(f"not a kubeconfig with embedded certificates: {error!r}") from None


def _find_by_name(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _pem(item: Mapping[str, Any], key: str) -> str:
    return base64.b64decode(item.get(key, "")).decode()


def tls(access: Access) -> ssl.SSLContext:
    """A TLS context that trusts only the cluster's CA and shows our certificate.

    Python's ssl reads certificates from files alone: they lie for an instant in a folder that
    only this user may enter.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=access.authority)
    if access.certificate:
        with tempfile.TemporaryDirectory(prefix="gpuboot-") as folder:
            path = Path(folder) / "client.pem"
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(access.certificate + "\n" + access.key)
            context.load_cert_chain(path)
    return context


class Cluster:
    """The API server, asked with a kubeconfig's rights.

    + access: the kubeconfig's content
    + url: where the server is reached, e.g. `https://127.0.0.1:40001`

    The server's certificate is checked against the kubeconfig's host name, whatever `url` says.
    """

    def __init__(self, access: Access, url: str) -> None:
        self.url = url
        self._headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
        self._pool = urllib3.PoolManager(
            maxsize=16,
            ssl_context=tls(access),
            server_hostname=access.host,
            assert_hostname=access.host,
            timeout=_TIMEOUT,
            # one that was silent for the whole time-out is asked again once: another may be there
            # by then (a virtual address moves), and a site without etcd is told of within a minute
            retries=_Retry(total=2, read=1, backoff_factor=0.3, raise_on_status=False),
        )

    def get(self, path: str, query: Mapping[str, str] | None = None, form: str = "") -> bytes:
        """The body of a GET below the API server.

        + path: e.g. `/api/v1/nodes`
        + query: parameters
        + form: of the answer, as its header Accept names it

        Raises `ClusterError` for no answer and for any status but 200.
        """
        url = self.url + path + (f"?{urlencode(query)}" if query else "")
        try:
            headers = {**self._headers, "Accept": form} if form else self._headers
            answer = self._pool.request("GET", url, headers=headers)
        except HTTPError as error:
            raise ClusterError(f"GET {path}: {_cause(error)}") from None
        if answer.status != 200:
            raise ClusterError(f"GET {path}: {answer.status} {_say(answer.data)}", answer.status)
        return bytes(answer.data)

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """`get`, parsed. Raises `ClusterError` for a body that is no JSON."""
        body = self.get(path, query)
        try:
            return json.loads(body)
        except ValueError:
            raise ClusterError(f"GET {path}: the answer is no JSON: {body[:80]!r}") from None

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        """Change what is below the API server; its answer, None where that has no body.

        + method: `POST`, `PUT` or `DELETE`
        + path: may hold a query
        + body: of the request; None: it has none
        + missing_ok: that there is no such object is no error

        Raises `ClusterError`.
        """
        try:
            answer = self._pool.request(method, self.url + path, headers=self._headers, json=body)
        except HTTPError as error:
            raise ClusterError(f"{method} {path}: {_cause(error)}") from None
        if answer.status >= 300 and not (missing_ok and answer.status == 404):
            reason = _say(answer.data)
            raise ClusterError(f"{method} {path}: {answer.status} {reason}", answer.status)
        return json.loads(answer.data) if answer.data else None

    @contextlib.contextmanager
    def lines(self, path: str, query: Mapping[str, str], idle_s: float) -> Iterator[Lines]:
        """The lines of an answer that grows: a watch, or a log that is followed.

        + idle_s: how long to wait for the next line

        Raises `ClusterError` for no answer and for any status but 200.
        """
        url = f"{self.url}{path}?{urlencode(query)}"
        try:
            answer = self._pool.request(
                "GET", url, headers=self._headers, preload_content=False,
                timeout=urllib3.Timeout(connect=10, read=idle_s),
            )  # fmt: skip
        except HTTPError as error:
            raise ClusterError(f"GET {path}: {_cause(error)}") from None
        try:
            if answer.status != 200:
                reason = _say(answer.read())
                raise ClusterError(f"GET {path}: {answer.status} {reason}", answer.status)
            yield Lines(answer)
        finally:
            answer.close()  # it has no end of its own, so its connection serves nothing else

    def now(self) -> datetime:
        """The API server's clock, to the second. Raises `ClusterError`."""
        try:
            answer = self._pool.request("GET", f"{self.url}/version", headers=self._headers)
            return parsedate_to_datetime(answer.headers["Date"])
        except (HTTPError, KeyError, ValueError) as error:
            raise ClusterError(f"GET /version: no time of the API server: {error}") from None

    def service(self, namespace: str, name: str, port: int | str) -> str:
        """Path of a Service in the API server's proxy."""
        return f"/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy"

    def pod(self, namespace: str, name: str, port: int) -> str:
        """Path of a pod in the API server's proxy."""
        return f"/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy"

    def close(self) -> None:
        self._pool.clear()


def _cause(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, ReadTimeoutError) and (waited := _WAITED.search(str(reason))):
        return f"no answer within {waited[1]} s"
    return f"{type(reason).__name__}: {reason}"


def _say(body: bytes) -> str:
    """The message of a Kubernetes Status object, or the beginning of any other body."""
    with contextlib.suppress(ValueError, AttributeError):
        if message := json.loads(body).get("message"):
            return str(message)
    return body[:200].decode(errors="replace").strip()


@contextlib.contextmanager
def route(transport: Transport | None, address: str, port: int) -> Iterator[tuple[str, int]]:
    """The host and port by which an address is reached from here, as long as the block lasts.

    + transport: SSH to a machine that reaches it; None: it is reached from here

    Raises `ClusterError` when the machine does not get there.
    """
    with contextlib.ExitStack() as stack:
        if transport is not None:
            try:
                port = stack.enter_context(forward(transport, address, port))
            except TunnelError as error:
                raise ClusterError(str(error)) from None
            address = "127.0.0.1"
        yield address, port


@contextlib.contextmanager
def connect(kubeconfig: str, transport: Transport | None) -> Iterator[Cluster]:
    """The cluster of a kubeconfig.

    + kubeconfig: its text; it stays in memory
    + transport: SSH to a machine that reaches the API server; None: it is reached from here

    Raises `ClusterError`.
    """
    access = read_kubeconfig(kubeconfig)
    with contextlib.ExitStack() as stack:
        host, port = stack.enter_context(route(transport, access.host, access.port))
        bare = f"[{host}]" if ":" in host else host
        cluster = Cluster(access, f"https://{bare}:{port}")
        stack.callback(cluster.close)
        yield cluster
