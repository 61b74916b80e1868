"""Hosts that could not be connected to in this run, and why."""

from __future__ import annotations

from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.connectors.ssh import SSHConnector

from deploys.engine import privilege
from deploys.engine.current_host import current_host
from gpuboot.config.problems import Problem

# inventory name -> what the connection ended with
unreachable: dict[str, str] = {}


def note_unreachable(host: str, error: BaseException) -> None:
    """Remember why a host could not be connected to, so that it is not tried again."""
    unreachable[host] = str(error.args[0] if error.args else error)


def reach(host: Host) -> bool:
    """Whether a host is connected, if need be from now on: it may be outside of `--limit`."""
    if not host.connected and host.name not in unreachable:
        try:
            host.connect(show_errors=False, raise_exceptions=True)
            with current_host(host):
                privilege.prepare_askpass(host)
        except PyinfraError as error:
            note_unreachable(host.name, error)
    return bool(host.connected)


def is_lost(host: Host) -> bool:
    """Whether a host's SSH connection has ended; those of other connectors cannot."""
    if not isinstance(host.connector, SSHConnector) or host.connector.client is None:
        return False
    transport = host.connector.client.get_transport()
    return transport is None or not transport.is_active()


def unreachable_problem(host: str) -> Problem:
    """The problem of a host that could not be connected to."""
    return Problem(
        host,
        f"cannot be reached: {unreachable[host]}",
        "check its address, SSH key and user with `pyinfra INVENTORY exec -- true`, or leave it "
        f"out of this run: --exclude {host}",
    )
