"""Tells which GPU nodes would be repaired, and why; or repairs them. For `gpuboot remediate`.

$GPUBOOT_ANSWER names the file that gets the answer. It changes nothing unless $GPUBOOT_ACT is 1;
then each step is told as it is taken, as a line of JSON for $GPUBOOT_STEPS.
"""

import os
from functools import partial

from pyinfra.api.deploy import deploy
from pyinfra.context import host, state

from deploys.parts.repair import operations as operations
from deploys.run.collect import denied_root
from deploys.run.context import begin, read_leader
from deploys.run.lock import hold


@deploy("Remediate")
def remediate() -> None:
    """Ask on the leader, and on no other host; nodes are reached when they are to be changed."""
    settings, lock, nodes = begin()
    leader = read_leader()
    if host.name != leader.host:
        return
    if os.environ.get("GPUBOOT_ACT") == "1":
        operations.acted(
            name="Repair GPU nodes",
            settings=settings,
            versions=lock,
            nodes=nodes,
            leader=leader.host,
            path=os.environ["GPUBOOT_ANSWER"],
            locking=partial(hold, state, "gpuboot remediate --act"),
            denied=denied_root,
        )
        return
    operations.assessed(
        name="Judge the GPU nodes",
        settings=settings,
        leader=leader.host,
        path=os.environ["GPUBOOT_ANSWER"],
    )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    remediate()
