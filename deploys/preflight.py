"""Preflight: reads all machines, names everything that is wrong, and changes nothing."""

from __future__ import annotations

from gevent.lock import RLock
from gevent.pool import Pool
from pyinfra.api.deploy import deploy
from pyinfra.api.exceptions import DeployError
from pyinfra.api.facts import get_fact
from pyinfra.context import ctx_host, state

from deploys import context
from deploys.facts.reach import Silent
from gpuboot import reach
from gpuboot.checks.preflight import judge
from gpuboot.problems import Problem, render

_once = RLock()


@deploy("Preflight")
def preflight() -> None:
    """Judge all hosts, once per run, while pyinfra prepares; so `--dry` shows it as well.

    Raises `DeployError` with every problem of every host, also of those that did not connect.
    """
    with _once:
        run = context.read()
        if run.verdict is None:
            problems = [
                *run.unread,
                *judge(run.nodes, run.states, run.settings, run.lock),
                *_unreachable(run),
            ]
            run.verdict = render(problems) if problems else ""
        if run.verdict:
            raise DeployError(run.verdict)


def _unreachable(run: context.Run) -> list[Problem]:
    """A problem for each mirror or publisher that a host needs and cannot reach."""
    readable = [node for node in run.nodes if node.host in run.states]

    def ask(host: str, addresses: list[str]) -> list[str]:
        target = run.inventory.get_host(host)
        with ctx_host.use(target):
            silent: list[str] = get_fact(state, target, Silent, kwargs={"addresses": addresses})
            return silent

    asked = Pool(len(readable) or 1).map(
        lambda node: ask(node.host, list(reach.endpoints(run.settings, node))), readable
    )
    silent = {node.host: answer for node, answer in zip(readable, asked, strict=True)}
    return reach.problems(run.settings, readable, silent)
