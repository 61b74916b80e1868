"""The operation that tells which GPU nodes would be repaired. It changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

from pyinfra.context import host, inventory

from deploys.lib.cluster_api import cluster_clients
from deploys.lib.commands import Commands, executing
from deploys.lib.operation import operation
from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import ClusterError
from gpuboot.kubernetes.repair import report
from gpuboot.kubernetes.repair.decide import decide
from gpuboot.kubernetes.repair.observe import observe


@operation(compared=False)
def judged(settings: Settings, leader: str, path: str) -> Commands:
    """Ask the cluster, and write what would be done and why.

    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the answer as JSON
    """
    if not executing():
        return
    try:
        with cluster_clients(inventory.get_host(leader)) as clients:
            now = clients.now().timestamp()
            world = observe(clients, settings, now)
        found = report.document(world, decide(world, now, settings.remediate), settings, now)
    except ClusterError as error:
        found = report.failed(settings, str(error))
    Path(path).write_text(json.dumps(found, indent=1), encoding="utf-8")
    host.noop("the cluster was asked")
    yield from ()
