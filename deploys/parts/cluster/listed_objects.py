"""Objects of Helm releases and of gpuboot, as soon as the API server can list them."""

from pyinfra.context import host

from deploys.engine.answers import read
from deploys.engine.commands import executing
from deploys.engine.waiting import wait_until
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.cluster.objects_fact import Managed
from gpuboot.cluster.managed_objects import ManagedObjects
from gpuboot.cluster.readiness import Progress

_LISTED_S = 60


def managed_objects() -> ManagedObjects:
    """The objects. Call it on the leader.

    For seconds after a definition was applied, the API server answers "storage is
    (re)initializing" to who lists its kind; while a run executes, that is waited for.
    """
    managed = read(Managed, kubeconfig=ADMIN_CONF)
    if not managed.error or not executing():
        return managed

    def probe() -> Progress:
        nonlocal managed
        managed = read(Managed, kubeconfig=ADMIN_CONF)
        return Progress(not managed.error, managed.error)

    wait_until(host, probe, _LISTED_S)
    return managed
