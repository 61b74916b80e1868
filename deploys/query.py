"""What the cluster's Prometheus knows. Run by `gpuboot query`, `profile`, `cost` and `capacity`.

It changes nothing. $GPUBOOT_QUESTION holds the question, $GPUBOOT_ANSWER names the file that gets
the answer.
"""

import os

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from deploys.parts.query import operations as operations
from deploys.run.context import begin, read_leader
from gpuboot.query.questions import from_json


@deploy("Query")
def query() -> None:
    """Ask on the leader, and on no other host."""
    settings = begin()[0]
    leader = read_leader()
    if host.name == leader.host:
        operations.answered(
            name="Query Prometheus",
            question=from_json(os.environ["GPUBOOT_QUESTION"]),
            settings=settings,
            leader=leader.host,
            path=os.environ["GPUBOOT_ANSWER"],
        )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    query()
