"""The transport that every connection of a run has."""

from __future__ import annotations

import socket

from deploys.lib.ssh import IDLE_CHECK_S, fast_transport


def test_small_packets_leave_at_once_and_an_idle_connection_rests() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        transport = fast_transport(near)
        assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert near.gettimeout() == IDLE_CHECK_S
        transport.close()
        near.close()
