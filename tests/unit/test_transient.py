"""Which errors another try may end: as curl, apt and Go's programs print them."""

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr
from pyinfra import logger
from pyinfra.api.command import StringCommand

from deploys.engine import download_retries, privilege
from gpuboot.hosts.transient import PAUSES_S, reason

Respond = Callable[[BaseHTTPRequestHandler], None]
Reports = tuple[list[str], list[int]]


@pytest.mark.parametrize(
    "message",
    [
        # curl 7.81 to 8.x
        "curl: (56) Recv failure: Connection reset by peer",
        "curl: (35) OpenSSL SSL_connect: Connection reset by peer in connection to m:443",
        "curl: (35) OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to m:443",
        "curl: (6) Could not resolve host: mirror.example",
        "curl: (7) Failed to connect to m port 443 after 2 ms: Couldn't connect to server",
        "curl: (28) Operation timed out after 15001 milliseconds with 0 bytes received",
        "curl: (28) Connection timed out after 15001 milliseconds",
        "curl: (52) Empty reply from server",
        "curl: (18) transfer closed with 1024 bytes remaining to read",
        "curl: (92) HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)",
        "curl: (22) The requested URL returned error: 503",
        "curl: (22) The requested URL returned error: 429",
        "curl: (56) CONNECT tunnel failed, response 502",
        # apt 2.4 to 3.0
        "  Could not connect to m:443 (192.0.2.1). - connect (111: Connection refused)",
        "Err:1 https://m InRelease\n  Temporary failure resolving 'm'",
        "  Error reading from server. Remote end closed connection [IP: 192.0.2.1 443]",
        "  Connection failed [IP: 192.0.2.1 80]",
        "E: Failed to fetch http://m/x.deb  502  Bad Gateway [IP: 192.0.2.1 80]",
        "  Could not handshake: Error in the pull function. [IP: 192.0.2.1 443]",
        "  Unable to connect to m:https: [IP: 192.0.2.1 443]",
        # Helm, containerd, Docker
        'Error: Get "https://m": read tcp 10.0.0.2:1->10.0.0.1:443: read: connection reset by peer',
        'Error: Get "https://m": dial tcp: lookup m on 127.0.0.53:53: server misbehaving',
        'Error: Get "https://m/index.yaml": net/http: TLS handshake timeout',
        'Error: Get "https://m/index.yaml": EOF',
        'failed to do request: Head "https://m/v2/a": dial tcp 192.0.2.1:443: i/o timeout',
        "unexpected status from HEAD request to https://m/v2/a: 503 Service Unavailable",
        "toomanyrequests: You have reached your unauthenticated pull rate limit.",
    ],
)  # fmt: skip
def test_worth_another_try(message: str) -> None:
    assert reason(f"something before\n{message}\ngpuboot: cannot be downloaded; remedy: look")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "curl: (22) The requested URL returned error: 404",
        "curl: (22) The requested URL returned error: 403 Forbidden",
        "curl: (56) CONNECT tunnel failed, response 407",
        "curl: (56) Received HTTP code 407 from proxy after CONNECT",
        "curl: (60) SSL certificate problem: self-signed certificate in certificate chain",
        "E: Failed to fetch http://m/InRelease  404  Not Found [IP: 192.0.2.1 80]",
        "E: Unable to locate package nvidia-open",
        "E: Version '595.1-*' for 'nvidia-open' was not found",
        "W: GPG error: http://m InRelease: The following signatures couldn't be verified",
        'Error: chart "gpu-operator" version "v99" not found in https://m repository',
        'failed to resolve reference "m/a:1": m/a:1: not found',
        "failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized",
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        "gpuboot: https://m/gpg is not the key that is pinned",
    ],
)
def test_not_worth_another_try(message: str) -> None:
    assert reason(message) == ""


@contextmanager
def serving(respond: Respond) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            respond(self)

        def log_message(self, *words: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/key"
    finally:
        server.shutdown()
        server.server_close()


def reset(handler: BaseHTTPRequestHandler) -> None:
    # linger 0: closing sends RST, as a mirror does that is restarted
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()
    handler.close_connection = True
    handler.wfile = handler.rfile = BytesIO()  # there is nobody to answer


def status(code: int) -> Respond:
    return lambda handler: handler.send_error(code)


@pytest.mark.parametrize(
    ("respond", "is_transient"), [(reset, True), (status(503), True), (status(404), False)]
)
def test_this_machines_curl_says_what_is_known(respond: Respond, is_transient: bool) -> None:
    with serving(respond) as url:
        result = subprocess.run(["curl", "-fsSL", url], capture_output=True, text=True)
    assert result.returncode != 0
    assert bool(reason(result.stderr)) is is_transient, result.stderr


@pytest.mark.skipif(not shutil.which("apt-get"), reason="there is no apt here")
@pytest.mark.parametrize(
    ("respond", "is_transient"), [(reset, True), (status(503), True), (status(404), False)]
)
def test_this_machines_apt_says_what_is_known(
    tmp_path: Path, respond: Respond, is_transient: bool
) -> None:
    (tmp_path / "lists" / "partial").mkdir(parents=True)
    with serving(respond) as url:
        (tmp_path / "sources").write_text(f"deb [trusted=yes] {url} x/\n")
        options = {
            "Dir::Etc::sourcelist": tmp_path / "sources",
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": tmp_path / "lists",
            "Debug::NoLocking": "1",
            "APT::Sandbox::User": "",
            "Acquire::Retries": "0",
            "APT::Update::Error-Mode": "any",
        }
        words = [f"-o{key}={value}" for key, value in options.items()]
        result = subprocess.run(
            ["apt-get", "update", "-q", *words], capture_output=True, text=True, timeout=60
        )
    assert result.returncode != 0
    assert bool(reason(result.stdout + result.stderr)) is is_transient, (
        result.stdout + result.stderr
    )


def test_pauses_grow_and_last_a_minute() -> None:
    assert list(PAUSES_S) == sorted(set(PAUSES_S))
    assert sum(PAUSES_S) >= 60


RESET = "curl: (56) Recv failure: Connection reset by peer"


class Machine:
    """A host whose commands fail with these texts, one after the other; then they succeed."""

    name, print_prefix = "gpu1", "[gpu1] "

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.requests: list[tuple[str, dict[str, object]]] = []

    def run_shell_command(
        self, command: StringCommand, **arguments: object
    ) -> tuple[bool, SimpleNamespace]:
        self.requests.append((command.get_raw_value(), arguments))
        text = self.failures.pop(0) if self.failures else ""
        return not text, SimpleNamespace(stdout=text, output=text, output_lines=text.splitlines())


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Reports:
    messages: list[str] = []
    waits: list[int] = []

    def failed(host: object, text: str) -> bool:
        messages.append(text)
        return False

    monkeypatch.setattr(privilege, "become_arguments", lambda host: {"_sudo": True})
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(logger, "info", messages.append)
    monkeypatch.setattr(logger, "warning", messages.append)
    monkeypatch.setattr(download_retries, "report_failure", failed)
    return messages, waits


STATE = SimpleNamespace(print_output=False, print_input=False)


def run(host: Machine, **options: Any) -> bool:
    command = download_retries.with_retries("curl x", "the key of docker", **options)
    return bool(command.function(STATE, host, *command.args, **command.kwargs))


def test_a_mirror_that_resets_connections_for_a_while_is_waited_for(reports: Reports) -> None:
    messages, waits = reports
    host = Machine(RESET, RESET)
    assert run(host)
    assert len(host.requests) == 3
    assert waits == [1, 2]
    assert messages[0] == f"[gpu1] waiting for the key of docker: {RESET} (next try in 1 s)"


def test_after_a_minute_it_is_wrong(reports: Reports) -> None:
    messages, waits = reports
    assert not run(Machine(*[RESET] * 20))
    assert waits == list(PAUSES_S)
    assert messages[-1].startswith("the key of docker: not to be had in ")
    assert RESET in messages[-1]


def test_a_refusal_is_wrong_at_once(reports: Reports) -> None:
    messages, waits = reports
    assert not run(Machine("curl: (22) The requested URL returned error: 404"))
    assert waits == []
    assert "404" in messages[-1]


def test_a_missing_version_is_told_with_those_that_there_are(reports: Reports) -> None:
    messages, _ = reports
    host = Machine("E: Version '9-*' for 'kubelet' was not found")
    assert not run(host, failed="apt cannot install kubelet=9-*", versions="apt-cache madison k")
    assert [text for text, _ in host.requests][1:] == ["apt-cache madison k"]
    assert messages[-1].startswith(
        "apt cannot install kubelet=9-*: the repositories have no such version:\nE: Version"
    )
    assert messages[-1].endswith("it offers what is above")


def test_a_killed_dpkg_is_no_missing_version(reports: Reports) -> None:
    messages, _ = reports
    host = Machine("E: Sub-process /usr/bin/dpkg received signal 9.")
    assert not run(host, failed="apt cannot install kubelet", versions="apt-cache madison kubelet")
    assert len(host.requests) == 1
    assert "the installation was interrupted" in messages[-1]
    assert "remedy: run again" in messages[-1]


def test_what_is_not_needed_fails_nothing(reports: Reports) -> None:
    messages, _ = reports
    assert run(Machine("E: The repository 'https://x' is not signed."), needed=False)
    assert messages[-1] == (
        "[gpu1] the key of docker: not all could be read: E: The repository 'https://x' is not "
        "signed."
    )


def test_a_secret_goes_by_standard_input_alone(reports: Reports) -> None:
    host = Machine()
    command = download_retries.with_retries("curl --config - x", "x", SecretStr("proxy = secret"))
    assert "secret" not in repr(command.args) + repr(command.kwargs)
    assert command.function(STATE, host, *command.args, **command.kwargs)
    text, arguments = host.requests[0]
    assert "secret" not in text
    assert arguments["_stdin"] == "proxy = secret"
    assert arguments["_sudo"] is True
