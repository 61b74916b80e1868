"""Series of Prometheus over a window. Run by commands such as `gpuboot cost`; it changes nothing.

$GPUBOOT_QUESTION holds the question, $GPUBOOT_ANSWER names the file that gets the answer.
"""

from __future__ import annotations

import os

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from deploys.operations import query as operations
from deploys.run.context import begin, read_leader


@deploy("Ranges")
def ranges() -> None:
    """Ask on the leader, and on no other host."""
    settings = begin()[0]
    leader = read_leader()
    if host.name == leader.host:
        operations.series_read(
            name="Read series of Prometheus",
            question=os.environ["GPUBOOT_QUESTION"],
            settings=settings,
            leader=leader.host,
            path=os.environ["GPUBOOT_ANSWER"],
        )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    ranges()
