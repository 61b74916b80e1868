"""Downloads that lose their connection, are told to wait, to log in, or get something else."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import IO, Any

import pytest
from pydantic import SecretStr
from requests.adapters import HTTPAdapter

from gpuboot.mirror.client import Client, FetchError, Login
from tests.unit.mirror.mirror_upstream import Fault, Upstream, running

PIECE = 1 << 16
CONTENT = bytes(range(256)) * 1024
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with running() as server:
        server.files["/file"] = CONTENT
        yield server


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def client(waits: list[float]) -> Client:
    return Client(sleep=waits.append)


def fetch(client: Client, upstream: Upstream, target: Path, sha256: str = SHA256) -> None:
    client.download(f"{upstream.url}/file", target, sha256, len(CONTENT))


def test_a_file_whose_connection_ends_goes_on_where_it_was(
    client: Client, upstream: Upstream, tmp_path: Path, waits: list[float]
) -> None:
    upstream.faults["/file"] = Fault(times=1, cut=3 * PIECE + 99)
    fetch(client, upstream, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert upstream.requests == [("/file", ""), ("/file", f"bytes={3 * PIECE}-")]
    assert waits == [1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_server_without_ranges_is_asked_for_all_of_it_again(
    client: Client, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.ranges = False
    upstream.faults["/file"] = Fault(cut=4000)
    fetch(client, upstream, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_what_an_earlier_command_left_is_gone_on_with_or_thrown_away(
    client: Client, upstream: Upstream, tmp_path: Path
) -> None:
    part = tmp_path / "file.part"
    part.write_bytes(CONTENT[:5000])
    fetch(client, upstream, tmp_path / "file")
    assert upstream.requests == [("/file", "bytes=5000-")]
    for partial_content in (b"another file" * 10, CONTENT + b"more", CONTENT[:-1] + b"x"):
        part.write_bytes(partial_content)
        fetch(client, upstream, tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == CONTENT


def test_another_file_than_asked_for_is_never_put_in_place(
    client: Client, upstream: Upstream, tmp_path: Path
) -> None:
    with pytest.raises(FetchError, match="is not the file that was asked for") as error:
        fetch(client, upstream, tmp_path / "file", "0" * 64)
    assert "remedy" in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [len(CONTENT) - 1, len(CONTENT) + 1])
def test_a_file_of_another_length_is_refused(
    client: Client, upstream: Upstream, tmp_path: Path, length: int
) -> None:
    upstream.files["/file"] = (CONTENT + b"x")[:length]
    with pytest.raises(FetchError, match=f"{length} "):
        fetch(client, upstream, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_who_says_wait_is_waited_for(
    client: Client, upstream: Upstream, tmp_path: Path, waits: list[float]
) -> None:
    upstream.faults["/file"] = Fault(times=2, status=429, headers={"Retry-After": "17"})
    fetch(client, upstream, tmp_path / "file")
    assert waits == [17.0, 17.0]


def test_a_time_to_wait_may_be_a_date_and_is_never_longer_than_five_minutes(
    client: Client, upstream: Upstream, waits: list[float]
) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=3), usegmt=True)
    upstream.faults["/file"] = Fault(status=503, headers={"Retry-After": later})
    assert client.text(f"{upstream.url}/file") == CONTENT
    assert waits == [300.0]


def test_patience_ends_and_says_what_to_do(
    client: Client, upstream: Upstream, waits: list[float]
) -> None:
    upstream.faults["/file"] = Fault(times=99, status=502)
    with pytest.raises(FetchError, match=r"502 .*after 6 attempts\n +remedy: run the same command"):
        client.text(f"{upstream.url}/file")
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_who_is_not_there_is_told_by_name(client: Client) -> None:
    with pytest.raises(FetchError, match=r"127\.0\.0\.1:9/file: Connection refused"):
        client.text("http://127.0.0.1:9/file")


def test_what_is_not_there_is_asked_for_once(client: Client, upstream: Upstream) -> None:
    with pytest.raises(FetchError, match=r"404 .*\n +remedy: correct the version"):
        client.text(f"{upstream.url}/none")
    assert len(upstream.requests) == 1


def test_a_registry_gives_a_token_which_is_asked_for_once(
    client: Client, upstream: Upstream
) -> None:
    upstream.token = "t0ken"
    for name in ("one", "two"):
        upstream.files[f"/v2/a/blobs/{name}"] = b"x"
        assert client.text(f"{upstream.url}/v2/a/blobs/{name}") == b"x"
    assert upstream.logins == ["service=r&scope=repository%3Aa%3Apull"]


def test_a_registrys_password_goes_to_who_gives_tokens(upstream: Upstream) -> None:
    upstream.token = "t0ken"
    upstream.files["/v2/a/manifests/1"] = b"{}"
    host = upstream.url.removeprefix("http://")
    client = Client(logins={host: Login("puller", SecretStr("geheim"))})
    client.text(f"{upstream.url}/v2/a/manifests/1")
    [login] = upstream.logins
    assert login.endswith("Basic cHVsbGVyOmdlaGVpbQ==")
    assert "geheim" not in repr(client)


def test_a_token_that_is_not_enough_tells_of_the_setting(
    client: Client, upstream: Upstream
) -> None:
    upstream.files["/v2/a/manifests/1"] = b"{}"
    upstream.faults["/v2/a/manifests/1"] = Fault(times=9, status=403)
    with pytest.raises(FetchError, match=r'settings\.registries\["127\.0\.0\.1:\d+"\]'):
        client.text(f"{upstream.url}/v2/a/manifests/1")


def test_a_full_disk_keeps_what_is_there_and_says_so(
    client: Client, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    class Full:
        """A file on a disk that has room for nothing more."""

        def __init__(self, stream: IO[bytes]) -> None:
            self._stream = stream

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self._stream.close()

        def write(self, content: bytes) -> int:
            self._stream.write(content[:100])
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        stream: Any = opened(path, mode, *args, **kwargs)
        return Full(stream) if mode in ("wb", "ab") else stream

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(
            FetchError, match=r"is full, in the middle of .*\n.*what is there stays"
        ):
            fetch(client, upstream, tmp_path / "file")
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:100]
    fetch(client, upstream, tmp_path / "file")
    assert upstream.requests[-1] == ("/file", "bytes=100-")


def test_the_authority_of_the_settings_goes_before_the_environments(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities: list[Any] = []
    send = HTTPAdapter.send

    def fake_send(self: HTTPAdapter, request: Any, **options: Any) -> Any:
        authorities.append(options["verify"])
        return send(self, request, **options)

    monkeypatch.setattr(HTTPAdapter, "send", fake_send)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/environment.pem")
    Client(ca_file="/site.pem").text(f"{upstream.url}/file")
    Client().text(f"{upstream.url}/file")
    assert authorities == ["/site.pem", "/environment.pem"]
