"""The operation that runs a conformance suite. What it makes it removes: it yields no command."""

from pathlib import Path

from pyinfra.context import host, inventory

from deploys.engine.commands import Commands, executing
from deploys.engine.operation import operation
from deploys.engine.parent import end_requested
from deploys.parts.cluster.api_connection import cluster_clients
from deploys.parts.diagnose.recorder import say
from gpuboot.cluster.api import ClusterError
from gpuboot.conformance import runner
from gpuboot.conformance.manifests import NAMESPACE, Request
from gpuboot.conformance.runner import Outcome

_REMEDY = (
    "see kube-apiserver on the leader (`crictl ps -a`); when it answers, `kubectl delete namespace "
    f"{NAMESPACE}` removes the suite and its rights, if they are left"
)


@operation(compared=False)
def conforming(leader: str, request: Request, path: str, parent: int) -> Commands:
    """Run the suite, tell how far it is, and write what became of it.

    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the outcome as JSON
    + parent: number of the process with whose end it ends
    """
    if not executing():
        return
    with end_requested(parent) as stopped:
        try:
            with cluster_clients(inventory.get_host(leader)) as clients:
                outcome = runner.run(clients, request, say, stopped)
        except ClusterError as error:
            outcome = Outcome(error=f"{error}\n    remedy: {_REMEDY}")
    if Path(path).parent.exists():  # it is gone with a command that was killed
        Path(path).write_text(outcome.to_json(), encoding="utf-8")
    host.noop("the suite was run")
    yield from ()
