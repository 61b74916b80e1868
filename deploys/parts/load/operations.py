"""The operation that keeps free GPUs busy. What it makes it removes, so it yields no command."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pyinfra.context import host, inventory

from deploys.engine.commands import Commands, executing
from deploys.engine.operation import operation
from deploys.engine.parent import end_requested
from deploys.parts.cluster.api_connection import cluster_clients
from deploys.parts.diagnose.recorder import say
from deploys.parts.driver.driver_texts import driver_texts, simulated
from gpuboot.cluster.api import ClusterError
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.verify.load import load_runner
from gpuboot.verify.load.load_answers import Outcome
from gpuboot.verify.load.load_pods import LoadRequest


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
    texts = driver_texts(nodes)
    uuid_text = f"(UUID: {request.uuid})" if request.uuid else ""
    names = [name for name, text in texts.items() if uuid_text in text]
    empty_outcome = Outcome(kind=request.kind, asked_s=request.seconds)
    if not names:
        reason = f"{request.uuid or 'a GPU'} is on none of {', '.join(texts) or 'the nodes'}"
        return replace(empty_outcome, error=reason)
    try:
        with cluster_clients(inventory.get_host(leader)) as clients:
            outcome = load_runner.run(clients, names, settings, request, say, stopped)
    except ClusterError as error:
        return replace(empty_outcome, error=str(error))
    return replace(outcome, simulated=simulated(texts))
