"""An SSH server that runs what it is asked to on this machine, for one user with one key."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paramiko
from paramiko import common


class Shell(paramiko.ServerInterface):
    """One connection. + key: the only one that logs in"""

    def __init__(self, key: paramiko.PKey) -> None:
        self._key = key

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        is_accepted = username == "root" and key == self._key
        return common.AUTH_SUCCESSFUL if is_accepted else common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=_run, args=(channel, command.decode()), daemon=True).start()
        return True


def _run(channel: paramiko.Channel, command: str) -> None:
    result = subprocess.run(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    channel.sendall(result.stdout)
    channel.sendall_stderr(result.stderr)
    channel.send_exit_status(result.returncode)
    channel.close()


@contextmanager
def shell_server(folder: Path) -> Iterator[int]:
    """A server on 127.0.0.1 that lets root in with the key `folder/key`. Yields its port."""
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(folder / "key"))
    paramiko.ECDSAKey.generate().write_private_key_file(str(folder / "wrong-key"))
    host_key = paramiko.ECDSAKey.generate()
    transports = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # closed
                    return
                transport = paramiko.Transport(connection)
                transport.add_server_key(host_key)
                transport.start_server(event=threading.Event(), server=Shell(key))
                transports.append(transport)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    for transport in transports:
        transport.close()
