"""The operation that runs a conformance suite. What it makes it removes: it yields no command."""

from __future__ import annotations

from collections.abc import Sequence
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
from gpuboot.conformance import suite_runner
from gpuboot.conformance.ai import evidence_runner as ai_runner
from gpuboot.conformance.ai.evidence_results import Outcome as AiOutcome
from gpuboot.conformance.suite_manifests import NAMESPACE, Request
from gpuboot.conformance.suite_runner import Outcome

_REMEDY = (
    "see kube-apiserver on the leader (`crictl ps -a`); when it answers, `kubectl delete namespace "
    f"{NAMESPACE}` removes the suite and its rights, if they are left"
)
_AI_REMEDY = (
    "see kube-apiserver on the leader (`crictl ps -a`); the next `gpuboot conformance` removes "
    "what is left of this one"
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
                outcome = suite_runner.run(clients, request, say, stopped)
        except ClusterError as error:
            outcome = Outcome(error=f"{error}\n    remedy: {_REMEDY}")
    _write(outcome.to_json(), path)
    host.noop("the suite was run")
    yield from ()


@operation(compared=False)
def evidenced(
    settings: Settings, leader: str, nodes: Sequence[Node], image: str, path: str, parent: int
) -> Commands:
    """Look for the evidence of CNCF's AI conformance, and write what it comes to.

    + leader: inventory name of the host with the administrator's credentials
    + nodes: those with GPUs
    + image: with busybox
    + path: file on the control machine that gets the outcome as JSON
    + parent: number of the process with whose end it ends
    """
    if not executing():
        return
    text = simulated(driver_texts(nodes))
    names = [node.name for node in nodes]
    with end_requested(parent) as stopped:
        try:
            with cluster_clients(inventory.get_host(leader)) as clients:
                outcome = ai_runner.run(clients, names, settings, image, say, stopped)
        except ClusterError as error:
            outcome = AiOutcome(error=f"{error}\n    remedy: {_AI_REMEDY}")
    _write(replace(outcome, simulated=text).to_json(), path)
    host.noop("evidence was looked for")
    yield from ()


def _write(text: str, path: str) -> None:
    if Path(path).parent.exists():  # it is gone with a command that was killed
        Path(path).write_text(text, encoding="utf-8")
