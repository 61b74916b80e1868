"""The operation that reads what a forecast of capacity needs. It changes nothing."""

from __future__ import annotations

from pathlib import Path

from pyinfra.context import host, inventory

from deploys.lib.cluster_api import cluster_clients
from deploys.lib.commands import Commands, executing
from deploys.lib.operation import operation
from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import ClusterError
from gpuboot.usage.capacity.question import CapacityQuestion, asked, no_answer
from gpuboot.verify.collector import PROMETHEUS
from gpuboot.verify.prometheus import Prometheus


@operation(compared=False)
def capacity_read(
    question: CapacityQuestion, settings: Settings, leader: str, path: str
) -> Commands:
    """Ask the cluster's Prometheus and its API server, and write the answers.

    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the answer as JSON
    """
    if not executing():
        return
    about = {"cluster": settings.cluster.name}
    try:
        with cluster_clients(inventory.get_host(leader)) as clients:
            base = clients.service(settings.monitoring.namespace, *PROMETHEUS)
            text = asked(clients, Prometheus(clients, base), question, about)
    except ClusterError as error:
        text = no_answer(str(error))
    Path(path).write_text(text, encoding="utf-8")
    host.noop("demand and supply were read")
    yield from ()
