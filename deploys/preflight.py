"""Preflight: reads all machines, names everything that is wrong, and changes nothing."""

from __future__ import annotations

from gevent.lock import RLock
from pyinfra.api.deploy import deploy
from pyinfra.api.exceptions import DeployError

from deploys import context
from gpuboot.checks.preflight import judge
from gpuboot.problems import render

_once = RLock()


@deploy("Preflight")
def preflight() -> None:
    """Judge all hosts, once per run, while pyinfra prepares; so `--dry` shows it as well.

    Raises `DeployError` with every problem of every host, also of those that did not connect.
    """
    with _once:
        run = context.read()
        if run.verdict is None:
            problems = run.unread + judge(run.nodes, run.states, run.settings, run.lock)
            run.verdict = render(problems) if problems else ""
        if run.verdict:
            raise DeployError(run.verdict)
