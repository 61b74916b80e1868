"""The site's proxy: used where it must be, and its password nowhere but where it belongs."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic.types import SecretStr

from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.hosts import proxy as proxies

PASSWORD = "p%40ss'w$o\"rd"
LITERAL = "p@ss'w$o\"rd"


def site(**proxy: Any) -> Settings:
    return parse_settings({"proxy": proxy})


@pytest.mark.parametrize(
    ("url", "direct"),
    [
        ("https://mirror.example/x", True),
        ("https://a.corp.example/x", True),
        ("https://corp.example/x", True),
        ("https://b.star.example:8443/x", True),
        ("http://10.1.2.3:8080/x", True),
        ("http://[fd00::5]/x", True),
        ("http://10.9.9.9/x", True),
        ("https://mirror.example.com/x", False),
        ("https://notcorp.example/x", False),
        ("http://11.1.2.3/x", False),
    ],
)
def test_what_is_reached_without_it(url: str, direct: bool) -> None:
    entries = ["Mirror.example", ".corp.example", "*.star.example", "10.1.0.0/16", "10.9.9.9",
               "fd00::/8"]  # fmt: skip
    assert proxies.is_direct(url, entries) is direct
    assert proxies.is_direct(url, ["*"])
    assert not proxies.is_direct(url, [])


def test_apt_gets_the_password_in_a_file_of_its_own() -> None:
    url = f"http://me:{PASSWORD}@proxy:3128"
    proxy = site(http=url, https=url).proxy
    assert proxies.apt_auth(proxy) == f"machine http://proxy:3128 login me password {LITERAL}\n"
    assert proxies.without_password(proxy.http) == "http://proxy:3128"
    assert proxies.without_password(None) is None
    assert proxies.apt_auth(site(http="http://proxy:3128").proxy) == ""


def test_a_password_that_apt_cannot_be_told_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError, match=r"proxy\.http: apt knows no password") as error:
        site(http="http://me:two%20words@proxy:3128")
    assert "words" not in str(error.value)


def test_nothing_without_a_proxy() -> None:
    settings = parse_settings({})
    assert proxies.curl(settings, "https://m/key") is None
    assert proxies.exports(settings, {}) is None
    assert not proxies.is_set(settings.proxy)


@contextmanager
def proxy() -> Iterator[tuple[int, list[tuple[str, str | None]]]]:
    """A proxy that tells what it was asked, and by whom."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append((self.path, self.headers.get("Proxy-Authorization")))
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"ok\n")

        def log_message(self, *words: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, requests
    finally:
        server.shutdown()
        server.server_close()


BASIC = "Basic bWU6cEBzcyd3JG8icmQ="  # me:LITERAL


def fetch(
    settings: Settings,
    url: str,
    script: str = 'curl -fsSL --config - "$1"',
    stdin: SecretStr | None = None,
) -> subprocess.CompletedProcess[str]:
    stdin = stdin or proxies.curl(settings, url)
    assert stdin is not None
    return subprocess.run(
        ["sh", "-c", script, "_", url],
        input=stdin.get_secret_value(),
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=20,
    )


def test_curl_takes_it_from_standard_input() -> None:
    with proxy() as (port, requests):
        settings = site(http=f"http://me:{PASSWORD}@127.0.0.1:{port}")
        result = fetch(settings, "http://repository.invalid/key")
        assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr
        assert requests == [("http://repository.invalid/key", BASIC)]


def test_curl_leaves_it_out_where_the_site_says_so() -> None:
    with proxy() as (port, requests):
        settings = site(http="http://me:x@127.0.0.1:1", no_proxy=["127.0.0.0/8"])
        assert fetch(settings, f"http://127.0.0.1:{port}/key").returncode == 0
        assert requests == [("/key", None)]


def test_a_shell_takes_the_environment_as_it_is() -> None:
    with proxy() as (port, requests):
        settings = site(http=f"http://me:{PASSWORD}@127.0.0.1:{port}", no_proxy=["x.example"])
        environment = proxies.exports(settings, {"SSL_CERT_FILE": "/ca.pem"})
        script = 'eval "$(cat)"; test "$no_proxy$SSL_CERT_FILE" = x.example/ca.pem && curl -fs "$1"'
        result = fetch(settings, "http://repository.invalid/key", script, environment)
        assert result.returncode == 0, result.stderr
        assert requests == [("http://repository.invalid/key", BASIC)]


def test_units_read_it_from_a_file() -> None:
    settings = site(https=f"http://me:{PASSWORD}@p:1", no_proxy=["b", "a"])
    text = proxies.environment(settings.proxy, ["a", "10.0.0.0/8"]).get_secret_value()
    assert text == ("HTTPS_PROXY='http://me:p%40ss%27w%24o%22rd@p:1'\nNO_PROXY='a,10.0.0.0/8,b'\n")
    assert f"EnvironmentFile={proxies.ENVIRONMENT_FILE}" in proxies.UNIT
    assert "Environment=" not in proxies.UNIT


@pytest.mark.skipif(not shutil.which("apt-get"), reason="there is no apt here")
def test_apt_shows_it_to_the_proxy(tmp_path: Path) -> None:
    with proxy() as (port, requests):
        settings = site(http=f"http://me:{PASSWORD}@127.0.0.1:{port}")
        (tmp_path / "auth.conf").write_text(proxies.apt_auth(settings.proxy))
        (tmp_path / "auth.conf").chmod(0o600)
        (tmp_path / "sources").write_text("deb [trusted=yes] http://repository.invalid/x y/\n")
        (tmp_path / "lists" / "partial").mkdir(parents=True)
        options = {
            "Dir::Etc::sourcelist": tmp_path / "sources",
            "Dir::Etc::sourceparts": "-",
            "Dir::Etc::netrc": tmp_path / "auth.conf",
            "Dir::State::lists": tmp_path / "lists",
            "Debug::NoLocking": "1",
            "APT::Sandbox::User": "",
            "Acquire::Retries": "0",
            "Acquire::http::Proxy": proxies.without_password(settings.proxy.http),
        }
        words = [f"-o{key}={value}" for key, value in options.items()]
        subprocess.run(["apt-get", "update", *words], capture_output=True, timeout=30)
        assert requests
        assert {word for _, word in requests} == {BASIC}


@pytest.mark.parametrize(
    ("host_address", "other_addresses", "routes", "expected"),
    [
        ("10.0.1.5", ["10.0.1.9"], ["default", "10.0.1.0/24", "10.0.0.0/8"], ["10.0.1.0/24"]),
        ("10.0.1.5", ["10.0.2.9"], ["10.0.1.0/24"], ["10.0.1.0/24", "10.0.2.9"]),
        ("10.0.1.5", ["10.0.2.9"], ["192.168.0.0/16", "0.0.0.0/0"], ["10.0.1.5", "10.0.2.9"]),
        ("fd00::5", ["fd00::9"], ["10.0.1.0/24"], ["fd00::5", "fd00::9"]),
    ],
)
def test_nodes_are_reached_by_their_network(
    host_address: str, other_addresses: list[str], routes: list[str], expected: list[str]
) -> None:
    assert proxies.nearby(host_address, other_addresses, routes) == expected
