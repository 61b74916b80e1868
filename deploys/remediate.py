"""Which GPU nodes would be repaired, and why. Run by `gpuboot remediate`; it changes nothing.

$GPUBOOT_ANSWER names the file that gets the answer.
"""

from __future__ import annotations

import os

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from deploys.operations import remediate as operations
from deploys.run.context import begin, read_leader


@deploy("Remediate")
def remediate() -> None:
    """Ask on the leader, and on no other host."""
    settings = begin()[0]
    leader = read_leader()
    if host.name == leader.host:
        operations.judged(
            name="Judge the GPU nodes",
            settings=settings,
            leader=leader.host,
            path=os.environ["GPUBOOT_ANSWER"],
        )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    remediate()
