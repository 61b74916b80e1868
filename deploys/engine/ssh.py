"""SSH the way we want it: no Nagle, and connections that outlive quiet minutes but no host."""

from __future__ import annotations

import socket
import sys
from typing import Any

from paramiko import Transport

KEEPALIVE_S = 30
# How often a connection without traffic looks whether it is to be kept alive. paramiko does it ten
# times a second, which for a thousand hosts is ten thousand times.
IDLE_CHECK_S = 2.0
# How long a host may leave unacknowledged what was sent to it. Without this a command on a host
# whose power is cut ends when Linux gives up by itself, after 16 minutes (tcp(7), tcp_retries2).
# With a keepalive as the last that was sent it is the 30 s + 90 s of OpenSSH's usual settings.
SILENT_S = 90


def fast_transport(sock: Any, **kwargs: Any) -> Transport:
    """A transport that sends small packets at once (paramiko never sets TCP_NODELAY), and rests.

    Measured on a LAN: about 11 ms instead of 53 ms for each command. Use it as
    `ssh_paramiko_connect_kwargs = {"transport_factory": fast_transport}`.

    + sock: the connected socket, or a jump host's channel, which has no socket options
    """
    if hasattr(sock, "setsockopt"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1000)
    transport = Transport(sock, **kwargs)
    transport.sock.settimeout(IDLE_CHECK_S)
    transport.set_keepalive(KEEPALIVE_S)
    return transport
