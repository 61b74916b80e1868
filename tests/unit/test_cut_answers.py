"""An exporter's page that is cut on its way, even between two fields: a failed read, never a page.

The exporter makes its page in memory and writes it at once (dcgm-exporter, server.go, Metrics), so
Go sends it in chunks, or a short one with its length: what is missing shows in either.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from gpuboot.cluster.api import Access, Cluster, ClusterError
from tests.populations.page import Page
from tests.populations.table import POPULATIONS

PAGE = Page(POPULATIONS["h100-sxm"]).text().encode()
CUT = PAGE[: PAGE.index(b"# HELP", len(PAGE) // 2)]  # between two fields


def chunked(page: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    chunks = (page[at : at + 2048] for at in range(0, len(page), 2048))
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + end


def with_length(page: bytes, length: int = len(PAGE)) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + page


FULL_PAGES = {"chunks": chunked(PAGE), "a length": with_length(PAGE)}
SHORT = {
    "chunks without the last": chunked(CUT, b""),
    "a chunk that is announced, and nothing in it": chunked(CUT, b"800\r\n"),
    "less than its length": with_length(CUT),
}


@contextlib.contextmanager
def server(answer: bytes) -> Iterator[int]:
    """The port of what gives this answer to every question, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(65536)
                        connection.sendall(answer)

        Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def by_proxy(port: int) -> bytes:
    """Through the API server's proxy, as exporters are read."""
    access = Access("127.0.0.1", port, "", "", "")
    return Cluster(access, f"http://127.0.0.1:{port}").get("/metrics")


def by_curl(port: int) -> bytes:
    """As `deploys/parts/verify/docker_operations.py` asks, on the monitoring host."""
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    url = f"http://127.0.0.1:{port}/metrics"
    command = ["curl", "-fsSg", "--noproxy", "*", "--max-time", "10", url]
    result = subprocess.run(command, capture_output=True)
    if result.returncode:
        raise ClusterError(result.stderr.decode())
    return result.stdout


WAYS = pytest.mark.parametrize("read", [by_proxy, by_curl])


@WAYS
@pytest.mark.parametrize("answer", FULL_PAGES.values(), ids=FULL_PAGES)
def test_a_whole_page_is_read(read: Callable[[int], bytes], answer: bytes) -> None:
    with server(answer) as port:
        assert read(port) == PAGE


@WAYS
@pytest.mark.parametrize("answer", SHORT.values(), ids=SHORT)
def test_a_page_that_is_cut_is_no_page(read: Callable[[int], bytes], answer: bytes) -> None:
    with server(answer) as port, pytest.raises(ClusterError):
        read(port)
