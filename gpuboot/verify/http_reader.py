"""Prometheus at an address of its own, where no cluster's API server is in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from gpuboot.verify.prometheus import PrometheusError

_TIMEOUT = urllib3.Timeout(connect=5, read=20)


class HttpReader:
    """A reader for `gpuboot.verify.prometheus.Prometheus`.

    + url: of the web page, e.g. `https://prometheus.example.org` or `http://127.0.0.1:9090`
    + token: bearer token; "": none
    + ca_file: PEM file of the authority that signs its certificate; None: the system's

    Raises ValueError for an address that is none.
    """

    def __init__(self, url: str, token: str = "", ca_file: Path | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url!r} is no address such as https://prometheus.example.org")
        if token and parts.scheme == "http" and parts.hostname not in {"127.0.0.1", "localhost"}:
            raise ValueError("a token goes over https only")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(
            ca_certs=str(ca_file) if ca_file else None,
            cert_reqs="CERT_REQUIRED",
            timeout=_TIMEOUT,
            retries=urllib3.Retry(total=1, backoff_factor=0.2, raise_on_status=False),
        )

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """A GET below the address. Raises `PrometheusError` for no answer and for a bad one."""
        url = self._url + path + (f"?{urlencode(query)}" if query else "")
        try:
            answer = self._pool.request("GET", url, headers=self._headers)
        except HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise PrometheusError(f"{self._url}: {reason}") from None
        if answer.status in {401, 403}:
            raise PrometheusError(f"{self._url}: access denied ({answer.status})")
        try:
            return json.loads(answer.data)
        except ValueError:
            beginning = bytes(answer.data[:80])
            raise PrometheusError(f"{self._url}: {answer.status}, no JSON: {beginning!r}") from None
