"""The operation that asks how busy GPUs are. It changes nothing, so it yields nothing."""

from __future__ import annotations

from pathlib import Path

from pyinfra.context import host, inventory

from deploys.lib.cluster_api import cluster_clients
from deploys.lib.commands import Commands, executing
from deploys.lib.operation import operation
from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import ClusterError
from gpuboot.telemetry.usage_query import UsageQuery, answer, no_answer
from gpuboot.verify.collector import PROMETHEUS
from gpuboot.verify.prometheus import Prometheus


@operation(compared=False)
def answered(question: UsageQuery, settings: Settings, leader: str, path: str) -> Commands:
    """Ask the cluster's Prometheus, and write the answer.

    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the answer as JSON
    """
    if not executing():
        return
    namespace = settings.monitoring.namespace
    try:
        with cluster_clients(inventory.get_host(leader)) as clients:
            text = answer(Prometheus(clients, clients.service(namespace, *PROMETHEUS)), question)
    except ClusterError as error:
        text = no_answer(question, str(error))
    Path(path).write_text(text, encoding="utf-8")
    host.noop("Prometheus was queried")
    yield from ()
