"""Runs Kubernetes' conformance suite in the cluster. Run by `gpuboot conformance`.

$GPUBOOT_CONFORMANCE holds what is wanted, as JSON; $GPUBOOT_ANSWER names the file that gets what
became of it; $GPUBOOT_PARENT is the number of the process with whose end it ends.
"""

import json
import os

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from deploys.parts.conformance import operations as operations
from deploys.run.context import begin, read_leader
from gpuboot.cluster import storage
from gpuboot.conformance.manifests import Request


@deploy("Conformance")
def conformance() -> None:
    """On the leader, and on no other host."""
    _, lock, _ = begin()
    leader = read_leader()
    if host.name == leader.host:
        request = json.loads(os.environ["GPUBOOT_CONFORMANCE"])
        _, helper_image = storage.images(lock)
        operations.conforming(
            name="Run the suite",
            leader=leader.host,
            request=Request(lock.kubernetes.version, helper_image, **request),
            path=os.environ["GPUBOOT_ANSWER"],
            parent=int(os.environ["GPUBOOT_PARENT"]),
        )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    conformance()
