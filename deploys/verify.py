"""Proves the cluster. `pyinfra inventories/<site>.py deploys/verify.py -y`, or `gpuboot verify`.

The last phase of deploys/site.py, and a deploy of its own that touches nothing else.
"""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host, state

from deploys import run_report
from deploys.context import begin, current
from deploys.operations import prove


@deploy("Verify")
def verify() -> None:
    """Every GPU, from the PCI bus to Prometheus. Runs on the leader, when all else is done."""
    context = current()
    if context.settings.verify.enabled and host.name == context.leader.host:
        prove.chain(name="Every GPU, from the PCI bus to Prometheus", context=context)


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    run_report.watch(state, begin()[0])
    verify()
