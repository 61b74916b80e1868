"""The operations that tell which GPU nodes would be repaired, and repair them."""

import getpass
import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyinfra import logger
from pyinfra.api.host import Host
from pyinfra.context import host, inventory
from pyinfra_cli.exceptions import CliError

from deploys.engine.commands import Commands, executing
from deploys.engine.operation import operation
from deploys.parts.cluster.api_connection import cluster_clients
from deploys.parts.repair.node_repair import Hands, one_line
from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.repair import STEPS, repair_report
from gpuboot.repair.controller import Controller
from gpuboot.repair.controller import Hands as AnyHands
from gpuboot.repair.decide import decide
from gpuboot.repair.observe import observe
from gpuboot.verify.lease import VerificationLock

LEASE = "gpuboot-remediate"
_PATIENCE_S = 60  # longer than the Lease of a controller that was killed lasts


@operation(compared=False)
def assessed(settings: Settings, leader: str, path: str) -> Commands:
    """Ask the cluster, and write what would be done and why. Changes nothing.

    + leader: inventory name of the host with the administrator's credentials
    + path: file on the control machine that gets the answer as JSON
    """
    if not executing():
        return
    try:
        with cluster_clients(inventory.get_host(leader)) as clients:
            document = _assess(clients, settings)
    except ClusterError as error:
        document = repair_report.failed(settings, str(error))
    Path(path).write_text(json.dumps(document, indent=1), encoding="utf-8")
    host.noop("the cluster was asked")
    yield from ()


class RunLock(Protocol):
    """The lock by which this run alone changes a site."""

    def is_lost(self) -> object:
        """The run that has taken it since; None while this one holds it."""


Locking = Callable[[], AbstractContextManager[RunLock | None]]


@operation(is_idempotent=False, compared=False)
def acted(
    settings: Settings,
    versions: Lock,
    nodes: Sequence[Node],
    leader: str,
    path: str,
    locking: Locking,
    denied: Callable[[Host], Problem | None],
) -> Commands:
    """Repair what may be repaired now, tell each step, and write what is left to do and why.

    Only one such controller is at work, and none while a run changes the site.

    + versions: the version lock; nodes: all of the inventory; leader, path: as of `judged`
    + locking: holds the lock of the site's runs, or raises `CliError`
    + denied: what keeps a host's user from becoming root; None: nothing
    """
    if not executing():
        return
    lead = inventory.get_host(leader)
    hands = Hands(lead, settings, versions, nodes, denied)
    try:
        with cluster_clients(lead) as clients, site_lock(locking) as site:
            document = repaired(clients, settings, hands, site)
    except ClusterError as error:
        document = repair_report.failed(settings, str(error))
    Path(path).write_text(json.dumps(document, indent=1), encoding="utf-8")
    host.noop("the controller has done what it may do now")
    yield from ()


@dataclass
class SiteLock:
    """The lock by which one run at a time changes a site, taken when nodes are to be changed.

    + acquire: takes it; raises `CliError`
    """

    acquire: Callable[[], RunLock | None]
    refusal_reason: str | None = None  # it was refused; "" when it was not; None: nobody has asked
    _locks: list[RunLock] = field(default_factory=list)

    def refusal(self) -> str:
        """Why nothing may be done to nodes in this run; "" when it may."""
        if self.refusal_reason is None:
            try:
                self._locks += filter(None, [self.acquire()])
                self.refusal_reason = ""
            except CliError as error:
                self.refusal_reason = one_line(error)
                logger.warning(self.refusal_reason)
        return self.refusal_reason

    def is_lost(self) -> bool:
        """Whether another run has taken it since."""
        return any(lock.is_lost() for lock in self._locks)


@contextmanager
def site_lock(locking: Locking) -> Iterator[SiteLock]:
    """A lock of the site, released at the end of the block. + locking: as of `acted`"""
    with ExitStack() as stack:
        yield SiteLock(lambda: stack.enter_context(locking()))


def repaired(
    clients: Cluster, settings: Settings, hands: AnyHands, site: SiteLock
) -> repair_report.Json:
    """What is left when the controller has done what it may. Raises `ClusterError`."""
    holder = f"{getpass.getuser()}@{socket.gethostname()}-{os.getpid()}"
    lease = VerificationLock(clients, holder, logger.info, LEASE, "another gpuboot remediate --act")
    if blocked := lease.acquire(_PATIENCE_S):
        return repair_report.failed(settings, f"{blocked}: nothing was done")
    try:
        controller = Controller(
            clients, settings, hands, _print_step,
            has_control=lambda: not lease.is_lost() and not site.is_lost(), refusal=site.refusal,
        )  # fmt: skip
        controller.run()
        document = _assess(clients, settings)
    finally:
        lease.release()
    document["stopped"] = document["stopped"] or site.refusal_reason or ""
    return document


def _assess(clients: Cluster, settings: Settings) -> repair_report.Json:
    now = clients.now().timestamp()
    world = observe(clients, settings, now)
    return repair_report.document(world, decide(world, now, settings.remediate), settings, now)


def _print_step(line: dict[str, Any]) -> None:
    os.write(int(os.environ[STEPS]), f"{json.dumps(line)}\n".encode())
