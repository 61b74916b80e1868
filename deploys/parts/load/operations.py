"""The operation that keeps free GPUs busy. What it makes it removes, so it yields no command."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import host, inventory

from deploys.engine.commands import Commands, executing
from deploys.engine.operation import operation
from deploys.engine.parent import end_requested
from deploys.engine.remote import run
from deploys.parts.cluster.api_connection import cluster_clients
from deploys.parts.diagnose.recorder import say
from gpuboot.cluster.api import ClusterError
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.nvidia_smi import ACCEPT_WARNING
from gpuboot.verify.load import runner
from gpuboot.verify.load.answers import Outcome
from gpuboot.verify.load.pods import LoadRequest

_AT_ONCE = 32
_READ = "cat /proc/driver/nvidia/version && timeout -k 5 60 nvidia-smi -L" + ACCEPT_WARNING


@operation(compared=False)
def loaded(
    settings: Settings,
    leader: str,
    nodes: Sequence[Node],
    request: LoadRequest,
    path: str,
    parent: int,
) -> Commands:
    """Load free GPUs, tell how far it is, and write what became of it.

    + leader: inventory name of the host with the administrator's credentials
    + nodes: those with GPUs that it is about
    + path: file on the control machine that gets the answer as JSON
    + parent: number of the process with whose end it ends
    """
    if not executing():
        return
    with end_requested(parent) as stopped:
        outcome = _load(settings, leader, nodes, request, stopped)
    if Path(path).parent.exists():  # it is gone with a command that was killed
        Path(path).write_text(outcome.to_json(), encoding="utf-8")
    host.noop("GPUs were kept busy")
    yield from ()


def _load(
    settings: Settings,
    leader: str,
    nodes: Sequence[Node],
    request: LoadRequest,
    stopped: Callable[[], bool],
) -> Outcome:
    driver_texts = _driver_texts(nodes)
    uuid_text = f"(UUID: {request.uuid})" if request.uuid else ""
    names = [name for name, text in driver_texts.items() if uuid_text in text]
    empty_outcome = Outcome(kind=request.kind, asked_s=request.seconds)
    if not names:
        reason = f"{request.uuid or 'a GPU'} is on none of {', '.join(driver_texts) or 'the nodes'}"
        return replace(empty_outcome, error=reason)
    try:
        with cluster_clients(inventory.get_host(leader)) as clients:
            outcome = runner.run(clients, names, settings, request, say, stopped)
    except ClusterError as error:
        return replace(empty_outcome, error=str(error))
    return replace(outcome, simulated=_simulated(driver_texts))


def _driver_texts(nodes: Sequence[Node]) -> dict[str, str]:
    """What each node's driver says of itself and its GPUs, by UUID; "" where nobody can say."""

    def read_driver(node: Node) -> str:
        try:
            return run(inventory.get_host(node.host), _READ)
        except PyinfraError:
            return ""

    return dict(
        zip((node.name for node in nodes), Pool(_AT_ONCE).map(read_driver, nodes), strict=True)
    )


def _simulated(driver_texts: dict[str, str]) -> str:
    """What a driver says that is simulated; "" on real hardware."""
    lines = (line for text in driver_texts.values() for line in text.splitlines())
    return next((line for line in lines if "simulated" in line.lower()), "")
