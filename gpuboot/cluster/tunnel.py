"""A port on this machine's loopback that leads through an SSH connection.

Plain threads and sockets: under gevent's monkey patching they are greenlets.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramiko import Channel, Transport

_CHUNK = 65536
_OPEN_TIMEOUT_S = 15.0


class TunnelError(RuntimeError):
    """The SSH connection leads to no target."""


@contextlib.contextmanager
def forward(transport: Transport, address: str, port: int) -> Iterator[int]:
    """Forward a free local port to `address:port` as seen from the SSH server.

    + transport: an authenticated paramiko transport; it stays open
    + address, port: where the connections shall end

    Yields the local port. It accepts any number of connections until the block ends, and
    listens on 127.0.0.1 alone. Raises `TunnelError` when the first try to get there fails.
    """
    _probe(transport, address, port)
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()
    accepting = threading.Thread(
        target=_accept, args=(listener, stopped, transport, address, port), daemon=True
    )
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        stopped.set()
        listener.close()
        accepting.join(timeout=2)


def _probe(transport: Transport, address: str, port: int) -> None:
    from paramiko import ChannelException, SSHException

    try:
        transport.open_channel(
            "direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=_OPEN_TIMEOUT_S
        ).close()
    except ChannelException as error:
        raise TunnelError(
            f"the SSH server does not connect us to {address}:{port}: {error.text} (it must allow "
            "TCP forwarding, and the target must listen)"
        ) from None
    except (SSHException, OSError, EOFError) as error:
        raise TunnelError(f"the SSH connection fails: {error}") from None


def _accept(
    listener: socket.socket,
    stopped: threading.Event,
    transport: Transport,
    address: str,
    port: int,
) -> None:
    while not stopped.is_set():
        try:
            # closing a listener does not wake accept() everywhere, so look up now and then
            if not select.select([listener], [], [], 0.2)[0]:
                continue
            client, peer = listener.accept()
        except (OSError, ValueError):
            return
        threading.Thread(
            target=_serve, args=(client, peer, transport, address, port), daemon=True
        ).start()


def _serve(
    client: socket.socket, peer: tuple[str, int], transport: Transport, address: str, port: int
) -> None:
    from paramiko import SSHException

    with client:
        try:
            channel = transport.open_channel(
                "direct-tcpip", (address, port), peer, timeout=_OPEN_TIMEOUT_S
            )
        except (SSHException, OSError, EOFError):
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_pump_back, args=(channel, client), daemon=True)
        back.start()
        _pump(client, channel)
        back.join()


def _pump(client: socket.socket, channel: Channel) -> None:
    """Copy bytes from the client to the channel, until either side ends."""
    with contextlib.suppress(OSError, EOFError):
        while data := client.recv(_CHUNK):
            channel.sendall(data)
    with contextlib.suppress(OSError, EOFError):
        channel.shutdown_write()


def _pump_back(channel: Channel, client: socket.socket) -> None:
    """Copy bytes from the channel to the client; when either side ends, both are closed."""
    with contextlib.suppress(OSError, EOFError):
        while data := channel.recv(_CHUNK):
            client.sendall(data)
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
    channel.close()
