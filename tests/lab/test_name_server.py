"""The lab's name server over real UDP."""

from __future__ import annotations

import socket
import threading

import pytest

from lab.mirror.name_server import answer, make_server


def question(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split(".") if part)
    return b"ab" + bytes((1, 0, 0, 1, 0, 0, 0, 0, 0, 0)) + labels + bytes((0, 0, kind, 0, 1))


@pytest.mark.parametrize(
    ("name", "kind", "rcode", "records"),
    [
        ("mirror.lab", 1, 0, 1),
        ("MIRROR.lab", 1, 0, 1),
        ("mirror.lab", 28, 0, 0),
        ("nvcr.io", 1, 3, 0),
        (".", 2, 3, 0),
    ],
)
def test_it_knows_one_name(name: str, kind: int, rcode: int, records: int) -> None:
    request = question(name, kind)
    got = answer(request, "mirror.lab", "10.77.1.1")
    assert (got[:2], got[3] & 15, got[7]) == (b"ab", rcode, records)
    assert got[12 : len(request)] == request[12:]
    assert got[len(request) :][-4:] == (bytes((10, 77, 1, 1)) if records else b"")


@pytest.mark.parametrize("broken", [b"", b"ab", question("mirror.lab")[:-3]])
def test_half_a_question_is_none(broken: bytes) -> None:
    with pytest.raises(ValueError, match="question"):
        answer(broken, "mirror.lab", "10.77.1.1")


def test_it_answers_over_udp_and_survives_rubbish() -> None:
    with make_server("127.0.0.1", 0, "mirror.lab") as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(5)
            client.sendto(b"x", server.server_address)
            client.sendto(question("mirror.lab"), server.server_address)
            assert client.recv(512).endswith(bytes((127, 0, 0, 1)))
        server.shutdown()
