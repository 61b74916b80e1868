"""Reads hosts that stand in no inventory yet. Run by `gpuboot init`; it changes nothing.

$GPUBOOT_FINDINGS names the file that gets what was read (`gpuboot/hosts/reading.py`).
"""

from gevent.lock import RLock
from gevent.pool import Pool
from pyinfra.api.host import Host
from pyinfra.context import state

from deploys.engine import connections
from deploys.engine import start_problems as findings
from deploys.engine.current_host import current_host
from deploys.engine.shell import run_command
from deploys.run.collect import collect
from gpuboot.hosts.reading import HostReading, Reading

_once = RLock()
_is_noted = False


def read_hosts() -> None:
    """Read all hosts of the inventory, once, whichever host's greenlet comes first."""
    global _is_noted
    with _once:
        if not _is_noted:
            findings.note(_read(list(state.inventory)))
            _is_noted = True


def _read(hosts: list[Host]) -> Reading:
    connected = [host for host in hosts if host.connected]
    pool = Pool(len(connected) or 1)
    root = dict(zip((host.name for host in connected), pool.map(_is_root, connected), strict=True))
    # busy hosts are read as they are: what is written down of them does not change
    states, problems = collect(state.inventory, [host.name for host in hosts], wait_s=0)
    readings = {
        host.name: HostReading(
            state=states[host.name], peer=_peer(host), root_login=root.get(host.name, False)
        )
        for host in hosts
        if host.name in states
    }
    return Reading(
        hosts=readings,
        unreachable=dict(connections.unreachable),
        problems=tuple(item for item in problems if item.host not in connections.unreachable),
    )


def _is_root(host: Host) -> bool:
    """Whether the login user is root; commands then run without sudo, which may not be there."""
    with current_host(host):
        root = run_command(host, "id -u").stdout == "0"
        if root:
            host.data._sudo = False  # not seen inside a @deploy, which keeps what held at its begin
    return root


def _peer(host: Host) -> str:
    """The IP address that the connection leads to; a jump host's where there is one."""
    client = getattr(host.connector, "client", None)
    transport = client.get_transport() if client is not None else None
    return str(transport.getpeername()[0]) if transport is not None else ""


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    read_hosts()
