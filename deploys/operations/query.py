"""The operations that ask Prometheus. They change nothing, so they yield nothing."""

from __future__ import annotations

from pathlib import Path

from pyinfra.context import host, inventory

from deploys.lib.cluster_api import cluster_clients
from deploys.lib.commands import Commands, executing
from deploys.lib.operation import operation
from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import ClusterError
from gpuboot.telemetry.questions import Question
from gpuboot.usage import ranges
from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.cost.question import from_json
from gpuboot.usage.series import SeriesError, to_json
from gpuboot.verify.collector import PROMETHEUS
from gpuboot.verify.prometheus import Prometheus, PrometheusError


@operation(compared=False)
def answered(question: Question, settings: Settings, leader: str, path: str) -> Commands:
    """Ask the cluster's Prometheus, and write the answer.

    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the answer as JSON
    """
    if not executing():
        return
    namespace = settings.monitoring.namespace
    try:
        with cluster_clients(inventory.get_host(leader)) as clients:
            text = question.answer(Prometheus(clients, clients.service(namespace, *PROMETHEUS)))
    except ClusterError as error:
        text = question.no_answer(str(error))
    Path(path).write_text(text, encoding="utf-8")
    host.noop("Prometheus was queried")
    yield from ()


@operation(compared=False)
def series_read(question: str, settings: Settings, leader: str, path: str) -> Commands:
    """Ask the cluster's Prometheus for series over a window, and write them.

    + question: of a command, as JSON
    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the answer as JSON, with the settings on cost
    """
    if not executing():
        return
    namespace = settings.monitoring.namespace
    about = {"cluster": settings.cluster.name, "cost": settings.cost.model_dump(mode="json")}
    try:
        asked = from_json(question, settings)
        with cluster_clients(inventory.get_host(leader)) as clients:
            prometheus = Prometheus(clients, clients.service(namespace, *PROMETHEUS))
            text = to_json(ranges.read(prometheus, asked, about))
    except (ClusterError, PrometheusError, CostError, SeriesError) as error:
        text = ranges.no_answer(str(error))
    Path(path).write_text(text, encoding="utf-8")
    host.noop("Prometheus was queried")
    yield from ()
