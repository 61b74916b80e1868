"""SSH the way we want it: no Nagle, and connections that outlive quiet minutes."""

from __future__ import annotations

import socket
from typing import Any

from paramiko import Transport

KEEPALIVE_S = 30
# How often a connection without traffic looks whether it is to be kept alive. paramiko does it ten
# times a second, which for a thousand hosts is ten thousand times.
IDLE_CHECK_S = 2.0


def fast_transport(sock: Any, **kwargs: Any) -> Transport:
    """A transport that sends small packets at once (paramiko never sets TCP_NODELAY), and rests.

    Measured on a LAN: about 11 ms instead of 53 ms for each command. Use it as
    `ssh_paramiko_connect_kwargs = {"transport_factory": fast_transport}`.

    + sock: the connected socket, or a jump host's channel, which has no socket options
    """
    if hasattr(sock, "setsockopt"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = Transport(sock, **kwargs)
    transport.sock.settimeout(IDLE_CHECK_S)
    transport.set_keepalive(KEEPALIVE_S)
    return transport
