"""The transport that every connection of a run has."""

from __future__ import annotations

import socket

from deploys.engine.ssh import IDLE_CHECK_S, SILENT_S, fast_transport


def test_packets_leave_at_once_an_idle_connection_rests_and_a_dead_host_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        transport = fast_transport(near)
        assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert near.gettimeout() == IDLE_CHECK_S
        assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == SILENT_S * 1000
        transport.close()
        near.close()
