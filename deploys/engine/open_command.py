"""A command on a host that runs on while the run does other things, and takes input from it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Any, Protocol

from gevent import subprocess as green
from paramiko import SSHException
from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.connectors.local import LocalConnector
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.connectors.util import make_unix_command_for_host
from pyinfra.context import state

from deploys.engine import privilege
from deploys.engine.current_host import current_host

# what a connection that ends or is made anew raises
CONNECTION_ERRORS = (OSError, EOFError, SSHException, PyinfraError)
_END_S = 2.0  # that a command may take to end after its input


class OpenCommand(Protocol):
    """A command that runs. Its methods raise one of `GONE` when the connection is lost."""

    def lines(self, timeout_s: float) -> Iterator[str]:
        """What it prints, standard error included, to its end."""

    def send(self, data: bytes) -> None:
        """Write to its input."""

    def has_ended(self) -> bool:
        """Whether it has ended, or the connection has."""

    def close(self) -> None:
        """End its input, and wait a moment for its end. Raises nothing."""


def begin(host: Host, command: str) -> OpenCommand | None:
    """Begin a shell command on a connected host, as the user that operations run as.

    Returns None where the host's connector has no such thing: it is neither SSH nor this machine.
    Raises one of `GONE`.
    """
    with current_host(host):
        arguments = privilege.become_arguments(host)
        line = make_unix_command_for_host(state, host, StringCommand(command), **arguments)
    if isinstance(host.connector, SSHConnector) and host.connector.client is not None:
        return _Ssh(host.connector.client.get_transport(), line.get_raw_value())
    if isinstance(host.connector, LocalConnector):
        return _Local(line.get_raw_value())
    return None


class _Ssh:
    def __init__(self, transport: Any, command: str) -> None:
        if transport is None or not transport.is_active():
            raise EOFError("the connection has ended")
        self._transport = transport
        self._channel = transport.open_session(timeout=15)
        self._channel.set_combine_stderr(True)
        self._channel.exec_command(command)

    def lines(self, timeout_s: float) -> Iterator[str]:
        self._channel.settimeout(timeout_s)
        remainder = b""
        while data := self._channel.recv(4096):
            *complete_lines, remainder = (remainder + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in complete_lines)
        yield remainder.decode(errors="replace")

    def send(self, data: bytes) -> None:
        self._channel.sendall(data)

    def has_ended(self) -> bool:
        return bool(self._channel.exit_status_ready() or not self._transport.is_active())

    def close(self) -> None:
        try:
            self._channel.shutdown_write()
            until = time.monotonic() + _END_S
            while not self.has_ended() and time.monotonic() < until:
                time.sleep(0.01)
            self._channel.close()
        except CONNECTION_ERRORS:
            pass


class _Local:
    def __init__(self, command: str) -> None:
        # a session of its own: Ctrl-C ends pyinfra, which has things to do until its end
        self._process = green.Popen(
            command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def lines(self, timeout_s: float) -> Iterator[str]:
        for line in self._process.stdout:
            yield line.decode(errors="replace")

    def send(self, data: bytes) -> None:
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        try:
            self._process.stdin.close()
            self._process.wait(_END_S)
        except (OSError, subprocess.TimeoutExpired, green.TimeoutExpired):
            pass
