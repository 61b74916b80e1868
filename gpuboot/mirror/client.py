"""HTTP to publishers of packages and images: patience, tokens, and downloads that resume."""

import errno
import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from pydantic import SecretStr

_TIMEOUT = (15, 60)  # seconds: to connect, and between two pieces of an answer
_ATTEMPTS = 6
_LONGEST_WAIT_S = 300.0
_RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_PIECE = 1 << 16  # of a connection that ends, what came since the last whole piece is lost
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_CONNECTION_ERRORS = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)
_T = TypeVar("_T")
Headers = Mapping[str, str]


class FetchError(RuntimeError):
    """Something was not fetched. + remedy: what a person can do"""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}\n    remedy: {remedy}")
        self.cause, self.remedy = cause, remedy


@dataclass(frozen=True)
class Login:
    """Name and password for a registry."""

    username: str
    password: SecretStr


@dataclass
class Client:
    """+ ca_file: PEM file of who signed the publishers' certificates; None: the system's

    + logins: registry's `host` or `host:port` -> name and password
    + sleep: waits so many seconds
    """

    ca_file: str | None = None
    logins: Mapping[str, Login] = field(default_factory=dict)
    sleep: Callable[[float], None] = time.sleep
    _tokens: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._session = requests.Session()
        self._session.headers["User-Agent"] = "gpuboot-mirror"
        self._session.headers["Accept-Encoding"] = "identity"  # digests are of files as they are

    def text(self, url: str, headers: Headers | None = None) -> bytes:
        """What is at an address, whole. Raises `FetchError`."""
        return self._patiently(url, lambda: self._open(url, headers or {}).content)

    def size(self, url: str) -> int | None:
        """How many bytes an address has, where its server says it."""

        def request_size() -> int | None:
            with self._open(url, {}) as answer:
                length = answer.headers.get("Content-Length")
            return int(length) if length else None

        return self._patiently(url, request_size)

    def download(self, url: str, target: Path, sha256: str, size: int) -> None:
        """Put a file at `target`, verified; goes on with what an earlier download left.

        + sha256, size: what it must have

        Raises `FetchError`.
        """
        part = target.with_name(f"{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        if part.exists() and part.stat().st_size > size:
            part.unlink()
        resumed = part.exists()
        digest = self._patiently(url, lambda: self._receive(url, part, size))
        if digest != sha256 and resumed:
            # what was left of it may have been of another file
            part.unlink()
            digest = self._patiently(url, lambda: self._receive(url, part, size))
        if digest != sha256:
            part.unlink()
            raise FetchError(
                f"{url} is not the file that was asked for: sha256 {sha256} wanted, {digest} found",
                "run it again; if it stays, ask its publisher, or correct the digest in "
                "settings.versions",
            )
        part.replace(target)

    def _receive(self, url: str, part: Path, size: int) -> str:
        """Fetch the rest of a file into `part`; its digest as a whole."""
        have = part.stat().st_size if part.exists() else 0
        if have != size or not part.exists():
            self._append(url, part, have)
        with part.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        length = part.stat().st_size
        if length < size:
            raise requests.ConnectionError(f"it ended after {length} of {size} bytes")
        if length > size:
            part.unlink()
            cause = f"{url} is longer than it should be: {length} bytes instead of {size}"
            raise FetchError(cause, "run it again; if it stays, ask its publisher")
        return digest

    def _append(self, url: str, part: Path, have: int) -> None:
        headers = {"Range": f"bytes={have}-"} if have else {}
        with self._open(url, headers) as answer:
            begins = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            goes_on = answer.status_code == 206 and begins
            expected = answer.headers.get("Content-Length")
            before = have if goes_on else 0
            try:
                with part.open("ab" if goes_on else "wb") as stream:
                    for piece in answer.iter_content(_PIECE):
                        stream.write(piece)
                    stream.flush()
                    os.fsync(stream.fileno())
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise _full(part, url) from None
        if expected is not None and part.stat().st_size < before + int(expected):
            raise requests.ConnectionError("the connection ended before the file did")

    def _patiently(self, url: str, send: Callable[[], _T]) -> _T:
        """Ask again while the answer is one that passes: lost connections, 429, 503."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return send()
            except _RetryError as retry:
                cause, wait = str(retry), retry.wait_s
            except _CONNECTION_ERRORS as error:
                cause, wait = f"{url}: {_reason(error)}", None
            if attempt < _ATTEMPTS:
                self.sleep(min(2.0 ** (attempt - 1) if wait is None else wait, _LONGEST_WAIT_S))
        raise FetchError(
            f"{cause}, after {_ATTEMPTS} attempts",
            "run the same command again: it goes on where it was; behind a proxy set HTTPS_PROXY",
        )

    def _open(self, url: str, headers: Headers) -> requests.Response:
        """An answer with a body, whatever authorization that takes."""
        host, scope = urlsplit(url).netloc, _scope(url)
        known_token = self._tokens.get((host, scope))
        answer = self._send(url, headers, known_token)
        if answer.status_code == 401:
            challenge = answer.headers.get("WWW-Authenticate", "")
            answer.close()
            token = self._authorize(host, challenge)
            self._tokens[host, scope] = token
            answer = self._send(url, headers, token)
        if answer.status_code in _RETRY_STATUSES:
            raise _RetryError(f"{url}: {answer.status_code} {answer.reason}", _retry_after(answer))
        if answer.status_code == 416:  # the part that is there is no beginning of it
            raise _RetryError(f"{url}: 416 {answer.reason}", 0.0)
        if answer.status_code >= 400:
            cause = f"{url}: {answer.status_code} {answer.reason}"
            raise FetchError(cause, _remedy(answer, host))
        return answer

    def _send(self, url: str, headers: Headers, authorization: str | None) -> requests.Response:
        authorization_header = {"Authorization": authorization} if authorization else {}
        return self._get(url, headers={**headers, **authorization_header}, stream=True)

    def _get(self, url: str, **options: Any) -> requests.Response:
        # said of each request: the environment's REQUESTS_CA_BUNDLE goes before a session's
        # (github.com/psf/requests/issues/3829)
        return self._session.get(url, verify=self.ca_file, timeout=_TIMEOUT, **options)

    def _authorize(self, host: str, challenge: str) -> str:
        """The header that a registry wants (distribution/spec, "Token Authentication")."""
        scheme, login = challenge.partition(" ")[0].lower(), self.logins.get(host)
        parameters = dict(_CHALLENGE.findall(challenge))
        pair = (login.username, login.password.get_secret_value()) if login else None
        if scheme == "basic" and pair:
            return requests.auth._basic_auth_str(*pair)
        if scheme != "bearer" or "realm" not in parameters:
            raise FetchError(f"{host} asks for a password", _LOGIN.format(host=host))
        query = {name: parameters[name] for name in ("service", "scope") if name in parameters}
        response = self._get(parameters["realm"], params=query, auth=pair)
        if response.status_code in _RETRY_STATUSES:
            raise _RetryError(
                f"{parameters['realm']}: {response.status_code}", _retry_after(response)
            )
        if response.status_code >= 400:
            cause = (
                f"{host}: no token from {parameters['realm']}: "
                f"{response.status_code} {response.reason}"
            )
            raise FetchError(cause, _LOGIN.format(host=host))
        document = response.json()
        return f"Bearer {document.get('token') or document['access_token']}"


_LOGIN = 'name user and password in settings.registries["{host}"] (docs/servers.md)'


class _RetryError(RuntimeError):
    """An answer that passes. + wait_s: how long its server asks to wait; None: it does not say"""

    def __init__(self, cause: str, wait_s: float | None) -> None:
        super().__init__(cause)
        self.wait_s = wait_s


def _retry_after(answer: requests.Response) -> float | None:
    """Retry-After in seconds: a number or a date (RFC 9110, 10.2.3)."""
    value = answer.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max((parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _scope(url: str) -> str:
    """What a token is for: a registry gives one for each repository."""
    path = urlsplit(url).path
    return re.split(r"/(?:manifests|blobs)/", path)[0]


def _reason(error: Exception) -> str:
    match = re.search(r"\[Errno -?\d+\] ([^'\")]+)|timed out|ended .*|certificate verify failed",
                      str(error))  # fmt: skip
    return (match[1] or match[0]) if match else type(error).__name__


def _remedy(answer: requests.Response, host: str) -> str:
    if answer.status_code in (401, 403):
        return _LOGIN.format(host=host)
    if answer.status_code == 404:
        return "correct the version in settings.versions, or the address in mirror.sources"
    return "ask who runs that server"


def _full(part: Path, url: str) -> FetchError:
    return FetchError(
        f"the disk of {part.parent} is full, in the middle of {url}",
        "free space, or move the folder to a larger disk, and run the same command again: what is "
        "there stays",
    )
