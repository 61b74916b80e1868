"""Publishers of packages and images on this machine: what they serve, and how they fail."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from gpuboot.mirror import release
from gpuboot.mirror.signing import Home

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class Fault:
    """What happens to a path's requests instead, as many times. + cut: the answer ends there"""

    times: int = 1
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None


@dataclass
class Upstream:
    """A web server. + files: path -> content; token: what registries ask for, "" for nothing

    + requests: each request, with its Range
    """

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    token: str = ""
    ranges: bool = True
    requests: list[tuple[str, str]] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    url: str = ""

    def fetched(self, path: str) -> int:
        return sum(request_path == path for request_path, _ in self.requests)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: Upstream

    def do_GET(self) -> None:
        upstream = self.upstream
        path, _, query = self.path.partition("?")
        path = unquote(path)
        upstream.requests.append((path, self.headers.get("Range", "")))
        if path == "/token":
            upstream.logins.append(f"{query} {self.headers.get('Authorization', '')}".strip())
            self._send(200, {}, json.dumps({"token": upstream.token}).encode())
            return
        closed = upstream.token and path.startswith("/v2/")
        if closed and self.headers.get("Authorization") != f"Bearer {upstream.token}":
            realm = f'Bearer realm="{upstream.url}/token",service="r",scope="repository:a:pull"'
            self._send(401, {"WWW-Authenticate": realm}, b"")
            return
        self._file(path)

    def _file(self, path: str) -> None:
        upstream = self.upstream
        content = upstream.files.get(path)
        if content is None:
            self._send(404, {}, b"")
            return
        fault = upstream.faults.get(path)
        if fault and fault.times:
            fault.times -= 1
            if fault.status:
                self._send(fault.status, fault.headers, b"")
                return
        else:
            fault = None
        first = self.headers.get("Range", "").removeprefix("bytes=").rstrip("-")
        headers = {"Content-Type": MANIFEST} if "/manifests/" in path else {}
        code, body = 200, content
        if first and upstream.ranges:
            code, body = 206, content[int(first) :]
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        self._send(code, headers, body, fault.cut if fault else None)

    def _send(
        self, code: int, headers: Mapping[str, str], content: bytes, cut: int | None = None
    ) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:cut])
        if cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def running() -> Iterator[Upstream]:
    upstream = Upstream()
    handler = type("Bound", (_Handler,), {"upstream": upstream})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    upstream.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        yield upstream
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def paragraph(name: str, version: str = "1.0", **fields: str) -> str:
    """A package of an index. + fields: depends="libc6", provides=…"""
    content = f"{name} {version}".encode()
    lines = {
        "Package": name,
        "Version": version,
        "Architecture": "amd64",
        **{key.replace("_", "-").title(): value for key, value in fields.items()},
        "Filename": f"pool/{name}_{version.replace(':', '%3a')}_amd64.deb",
        "Size": str(len(content)),
        "SHA256": hashlib.sha256(content).hexdigest(),
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def publish(
    upstream: Upstream, folder: str, packages: Mapping[str, str], key: Home, suite: str = ""
) -> None:
    """A signed apt repository. + packages: name -> paragraph; suite: "" for a flat repository"""
    text = "\n".join(packages.values()).encode()
    base = f"{folder}/dists/{suite}" if suite else folder
    name = "stable/binary-amd64/Packages" if suite else "Packages"
    indices = {name: text, f"{name}.gz": gzip.compress(text, mtime=0)}
    fields = {"Origin": "test", "Suite": suite or "/", "Date": release.date()}
    signed = release.text(fields, indices).encode()
    files = {
        **indices,
        "InRelease": key.clearsigned(signed),
        "Release": signed,
        "Release.gpg": key.detached(signed),
    }
    upstream.files |= {f"{base}/{path}": content for path, content in files.items()}
    for paragraph in text.decode().split("\n\n"):
        package = dict(line.split(": ", 1) for line in paragraph.splitlines())
        content = f"{package['Package']} {package['Version']}".encode()
        upstream.files[f"{folder}/{package['Filename']}"] = content


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def push(upstream: Upstream, repository: str, tag: str, layers: Mapping[str, list[bytes]]) -> bytes:
    """An image below /v2/. + layers: architecture -> contents; "" alone for one without an index

    Returns its manifest, or the index.
    """
    manifests = {name: _manifest(upstream, repository, content) for name, content in layers.items()}
    if list(manifests) == [""]:
        index = manifests[""]
    else:
        entries = [
            {"mediaType": MANIFEST, "digest": digest(content), "size": len(content),
             "platform": {"os": "linux", "architecture": name}}
            for name, content in manifests.items()
        ]  # fmt: skip
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    for name in (tag, digest(index)):
        upstream.files[f"/v2/{repository}/manifests/{name}"] = index
    return index


def _manifest(upstream: Upstream, repository: str, layers: list[bytes]) -> bytes:
    config = json.dumps({"os": "linux", "layers": len(layers)}).encode()
    described = []
    for content in (config, *layers):
        described.append({"digest": digest(content), "size": len(content)})
        upstream.files[f"/v2/{repository}/blobs/{digest(content)}"] = content
    tree = {"schemaVersion": 2, "config": described[0], "layers": described[1:]}
    content = json.dumps(tree).encode()
    upstream.files[f"/v2/{repository}/manifests/{digest(content)}"] = content
    return content
