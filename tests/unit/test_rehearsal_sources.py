"""A rehearsal by real apt: sources that cannot be read, and what becomes of the host."""

from __future__ import annotations

import os
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from gpuboot.hosts import package_rehearsal as rehearsal
from tests.unit import apt_host
from tests.unit.rehearsed_host import (
    CONTAINERD,
    DRIVER,
    KEY,
    OWN_SOURCE,
    UsedHost,
    azure,
    problems,
    used_host,
)

pytestmark = pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)


@pytest.fixture
def used() -> Iterator[UsedHost]:
    with used_host() as scratch_host:
        yield scratch_host


def test_a_publisher_that_does_not_answer_is_told(used: UsedHost) -> None:
    text = f"deb [signed-by={KEY}] http://127.0.0.1:1/gone /\n"
    outcome = used.rehearsed(CONTAINERD, sources={OWN_SOURCE.replace(".sources", ".list"): text})
    assert "Could not connect to 127.0.0.1:1" in outcome.error
    assert not outcome.is_rejected
    assert problems(outcome) == []
    [line] = rehearsal.warnings({"h": outcome})
    assert line.startswith("h: which packages this run removes there is not known: the rehearsal")


def test_a_key_that_is_not_there_or_signs_nothing_is_told(used: UsedHost) -> None:
    key_missing = used.rehearsed(CONTAINERD, keys={KEY: f"{used.address}/none.asc"})
    assert key_missing.error.startswith(f"the key {used.address}/none.asc cannot be read: ")
    assert "404" in key_missing.error
    foreign_key = apt_host.Key(used.host.path("other")).public()
    used.host.write("www/other.asc", foreign_key)
    rehearsal = used.rehearsed(CONTAINERD, keys={KEY: f"{used.address}/other.asc"})
    assert "NO_PUBKEY" in rehearsal.error
    assert not rehearsal.is_rejected


def test_a_pin_that_cannot_be_downloaded_leaves_it_unknown(used: UsedHost) -> None:
    """Without it another driver would come, which removes other packages."""
    name = "nvidia-driver-pinning-595.91.07_1_amd64.deb"
    used.host.path(f"www/publisher/{name}").unlink()
    outcome = used.rehearsed(DRIVER)
    assert "404" in outcome.error
    assert not outcome.is_rejected
    assert not outcome.transaction.installed


class _AskingProxy(BaseHTTPRequestHandler):
    """A proxy that passes on what comes with a password."""

    requests: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        authorization = self.headers.get("Proxy-Authorization")
        self.requests.append(authorization or "")
        if authorization != "Basic bWU6dmVyeS1zZWNyZXQ=":
            self.send_error(407)
            return
        with urllib.request.urlopen(self.path) as answer:
            content = answer.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        pass


def test_a_proxy_that_asks_for_a_password_is_given_it_by_standard_input(used: UsedHost) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _AskingProxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    configuration = f'Acquire::http::Proxy "{address}";\n'
    try:
        denied = used.rehearsed(CONTAINERD, configuration=configuration)
        assert "407" in denied.error
        auth = f"machine {address} login me password very-secret\n"
        outcome = used.rehearsed(
            CONTAINERD, configuration=configuration, credentials=True, stdin=auth
        )
        assert not outcome.error
        assert "containerd.io" in outcome.transaction.installed
        assert _AskingProxy.requests[-1]
    finally:
        server.shutdown()
        server.server_close()


def test_sources_that_apt_cannot_read_are_told(used: UsedHost) -> None:
    line = f"deb [signed-by=/etc/apt/keyrings/theirs.gpg] {used.address}/publisher /\n"
    used.host.write("/etc/apt/sources.list.d/theirs.list", line)
    outcome = used.rehearsed(CONTAINERD)
    assert "Conflicting values set for option Signed-By" in outcome.error
    assert not outcome.is_rejected


def test_what_apt_cannot_install_is_refused_in_its_words(used: UsedHost) -> None:
    used.offers("broken", "1", depends="libmissing9")
    for packages, message in (
        ({"kubelet": "1.99.0-*"}, "Version '1.99.0-*' for 'kubelet' was not found"),
        ({"nobody": ""}, "Unable to locate package nobody"),
        ({"nvidia-driver-pinning-9": "", "nvidia-open": ""}, "package nvidia-driver-pinning-9"),
        ({"broken": ""}, "broken : Depends: libmissing9 but it is not installable"),
    ):
        outcome = used.rehearsed(packages)
        assert outcome.is_rejected
        assert message in outcome.error
        assert [message in item for item in problems(outcome)] == [True]


def test_an_index_that_is_too_old_is_read_again(used: UsedHost) -> None:
    """The host's own sources: only where their indices are not enough."""
    used.host.write("/etc/apt/keyrings/own.asc", used.key.public())
    line = f"deb [signed-by=/etc/apt/keyrings/own.asc] {used.address}/publisher /\n"
    used.host.write("/etc/apt/sources.list.d/own.list", line)
    os.utime(used.host.path("www/publisher/InRelease"), (1e9, 1e9))
    assert used.host.run("apt-get update -q").returncode == 0
    used.offers("socat", "1.8")
    outcome = used.rehearsed({"socat": ""}, sources={}, keys={})
    assert outcome.transaction.installed == {"socat": ("", "1.8")}


@pytest.mark.parametrize("shell", ["dash", "busybox sh"])
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_host_stays_as_it_is(used: UsedHost, shell: str, umask: int) -> None:
    azure(used)
    used.host.write(
        "/etc/apt/apt.conf.d/20hook",
        f'APT::Update::Post-Invoke {{ "touch {used.host.root}/etc/hook"; }};\n',
    )
    places = ("etc", "var")
    files = [path for place in places for path in used.host.path(place).rglob("*")]
    before = {path: path.lstat().st_mtime_ns for path in files}
    outcome = used.rehearsed(DRIVER | CONTAINERD, shell, umask)
    assert not outcome.error
    assert outcome.transaction.removed
    files = [path for place in places for path in used.host.path(place).rglob("*")]
    assert {path: path.lstat().st_mtime_ns for path in files} == before
    assert list(used.host.path("run/gpuboot").iterdir()) == []
