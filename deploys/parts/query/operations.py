"""The operation that asks Prometheus. It changes nothing, so it yields nothing."""

from pathlib import Path

from pyinfra.context import host, inventory

from deploys.engine.commands import Commands, executing
from deploys.engine.operation import operation
from deploys.parts.cluster.api_connection import cluster_clients
from gpuboot.cluster.api import ClusterError
from gpuboot.config.settings import Settings
from gpuboot.query.questions import Question
from gpuboot.verify.collector import PROMETHEUS
from gpuboot.verify.prometheus import Prometheus


@operation(compared=False)
def answered(question: Question, settings: Settings, leader: str, path: str) -> Commands:
    """Ask the cluster's Prometheus, and its API server, and write the answer.

    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the answer as JSON
    """
    if not executing():
        return
    namespace = settings.monitoring.namespace
    try:
        query = question.within(settings)
        with cluster_clients(inventory.get_host(leader)) as clients:
            prometheus = Prometheus(clients, clients.service(namespace, *PROMETHEUS))
            text = query.answer(prometheus, clients)
    except (ClusterError, ValueError) as error:
        text = question.no_answer(str(error))
    Path(path).write_text(text, encoding="utf-8")
    host.noop("Prometheus was queried")
    yield from ()
