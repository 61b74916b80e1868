"""The lab's name server: CoreDNS' upstream, which knows the mirror's name and no other.

An answer comes at once, so that a look-up of any other name does not take seconds.
Source: RFC 1035, 4.1.
"""

from __future__ import annotations

import socketserver
from pathlib import Path

_HEADER = 12
_A, _INTERNET = 1, 1
_NXDOMAIN = 3
_MARK = "mirror-in-dns"  # in a lab's folder: its mirror was started with a name server


def note(lab: Path, serves: bool) -> None:
    """Note in a lab's folder whether it has a name server."""
    if serves:
        (lab / _MARK).touch()
    else:
        (lab / _MARK).unlink(missing_ok=True)


def in_dns(lab: Path) -> bool:
    """Whether the mirror's name is in the lab's DNS; labs of earlier versions have none."""
    return (lab / _MARK).exists()


def answer(question: bytes, name: str, address: str) -> bytes:
    """The answer to a question, for a name that has one IPv4 address. Raises ValueError.

    + name: the only one that there is
    """
    labels, end = _labels(question)
    kind = int.from_bytes(question[end : end + 2], "big")
    exists = ".".join(labels).lower() == name
    record = b""
    if exists and kind == _A:
        octets = bytes(map(int, address.split(".")))
        record = bytes((0xC0, _HEADER, 0, _A, 0, _INTERNET, 0, 0, 0, 30, 0, 4)) + octets
    flags = bytes((0x84 | question[2] & 1, 0x80 | (0 if exists else _NXDOMAIN)))
    counts = bytes((0, 1, 0, int(bool(record)), 0, 0, 0, 0))
    return question[:2] + flags + counts + question[_HEADER : end + 4] + record


def _labels(question: bytes) -> tuple[list[str], int]:
    """The labels of the name, and where it ends. Raises ValueError."""
    labels, at = [], _HEADER
    while at < len(question) and (length := question[at]):
        labels.append(question[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    if at + 5 > len(question):
        raise ValueError("no whole question")
    return labels, at + 1


def make_server(address: str, port: int, name: str) -> socketserver.UDPServer:
    """A server that is bound, but does not serve yet."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            question, connection = self.request
            try:
                connection.sendto(answer(question, name, address), self.client_address)
            except ValueError:
                return  # who sends less than a question gets no answer

    return socketserver.ThreadingUDPServer((address, port), Handler)
