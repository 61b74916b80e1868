"""A mirror's web server: static files, with what apt, Helm, curl and containerd look for.

Enough for a small site; any web server can serve the folder, if it answers `/v2/` and gives
manifests of images their Content-Type.
"""

import hashlib
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import time
import urllib.parse
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from typing import IO, Any

_OCI_INDEX = "application/vnd.oci.image.index.v1+json"
_OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_TYPES = {
    ".yaml": "application/yaml",
    ".json": "application/json",
    ".tgz": "application/gzip",
    ".gz": "application/gzip",
    ".deb": "application/vnd.debian.binary-package",
    ".asc": "application/pgp-keys",
}
_REUSE = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
_RANGE = re.compile(r"bytes=(\d+)-")


def locate(docroot: Path, url_path: str) -> Path | None:
    """The file that a request's path names: None when there is none or it lies outside."""
    decoded = urllib.parse.unquote(url_path.split("?", 1)[0])
    path = Path(os.path.normpath(docroot / decoded.lstrip("/")))
    if docroot not in path.parents or not path.is_file():
        return None
    return path


def headers_for(docroot: Path, path: Path) -> dict[str, str]:
    """Content-Type of a file, and a manifest's digest (OCI distribution spec)."""
    parts = path.relative_to(docroot).parts
    if parts[0] == "v2" and parts[-2] == "manifests":
        content = path.read_bytes()
        manifest = json.loads(content)
        default = _OCI_INDEX if "manifests" in manifest else _OCI_MANIFEST
        return {
            "Content-Type": manifest.get("mediaType", default),
            "Docker-Content-Digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
        }
    return {"Content-Type": _TYPES.get(path.suffix, "application/octet-stream")}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD for files below `docroot`."""

    protocol_version = "HTTP/1.1"
    server_version = "gpuboot-mirror"
    sys_version = ""
    timeout = 120
    docroot: Path
    ranges = True  # who was interrupted gets the rest of a file

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        if self.path.split("?", 1)[0].rstrip("/") == "/v2":
            self._send(200, {"Content-Type": "application/json"}, b"{}" if body else None, 2)
            return
        path = locate(self.docroot, self.path)
        if path is None:
            message = b"not in this mirror\n"
            self._send(404, {"Content-Type": "text/plain"}, message if body else None, len(message))
            return
        try:
            self._send_file(path, body)
        except ValueError as error:
            self.log_error("%s: %s", path, error)
            self._send(500, {}, b"", 0)

    def _send_file(self, path: Path, body: bool) -> None:
        status = path.stat()
        if self._not_modified(status.st_mtime):
            self._send(304, {}, b"", 0)
            return
        headers = headers_for(self.docroot, path)
        headers["Last-Modified"] = formatdate(status.st_mtime, usegmt=True)
        with path.open("rb") as stream:
            code, length = self._begin(stream, headers)
            self._send(code, headers, None, length)
            if body:
                shutil.copyfileobj(stream, self.wfile, 1 << 20)

    def _begin(self, stream: IO[bytes], headers: dict[str, str]) -> tuple[int, int]:
        """Status and length of an answer with a file, from where it was asked for."""
        size = os.fstat(stream.fileno()).st_size
        range_match = _RANGE.fullmatch(self.headers.get("Range", "")) if self.ranges else None
        # If-Range: the rest of a file that is another by now would fit to nothing
        unchanged = self.headers.get("If-Range") in (None, headers["Last-Modified"])
        if range_match is None or not unchanged or int(range_match[1]) >= size:
            return 200, size
        first = int(range_match[1])
        stream.seek(first)
        headers["Content-Range"] = f"bytes {first}-{size - 1}/{size}"
        return 206, size - first

    def _not_modified(self, mtime: float) -> bool:
        since = self.headers.get("If-Modified-Since")
        if since is None:
            return False
        try:
            return int(mtime) <= parsedate_to_datetime(since).timestamp()
        except ValueError:
            return False

    def _send(self, code: int, headers: dict[str, str], content: bytes | None, length: int) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if content:
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(f"{stamp} {self.client_address[0]} {format % args}", flush=True)


class Server(http.server.ThreadingHTTPServer):
    """A server, with TLS where it has a context: handshakes run in each connection's thread."""

    daemon_threads = True
    request_queue_size = 128
    context: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(30)
        try:
            if self.context is not None:
                request = self.context.wrap_socket(request, server_side=True)
        except (OSError, ssl.SSLError) as error:
            print(f"{client_address[0]} no TLS: {error}", flush=True)
            return
        try:
            super().finish_request(request, client_address)
        except (ConnectionError, TimeoutError, ssl.SSLError) as error:
            print(f"{client_address[0]} went away: {error}", flush=True)
        finally:
            request.close()

    def server_bind(self) -> None:
        # HTTPServer would look the address up in the DNS here
        self.socket.setsockopt(*_REUSE)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


def make_server(
    docroot: Path,
    address: str,
    port: int,
    certificate: Path | None = None,
    key: Path | None = None,
    handler: type[Handler] = Handler,
) -> Server:
    """A server that is bound, but does not serve yet. + certificate, key: for https"""
    bound = type("BoundHandler", (handler,), {"docroot": docroot})
    server = Server((address, port), bound)
    if certificate is not None:
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.load_cert_chain(certificate, key)
    return server
