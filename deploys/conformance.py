"""Runs Kubernetes' conformance suite, or looks for evidence of CNCF's AI conformance.

Run by `gpuboot conformance`. $GPUBOOT_CONFORMANCE holds what is wanted, as JSON, `{}` for evidence;
$GPUBOOT_ANSWER names the file that gets what became of it; $GPUBOOT_PARENT is the number of the
process with whose end it ends.
"""

import json
import os

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from deploys.parts.conformance import operations as operations
from deploys.run.context import begin, read_leader
from gpuboot.cluster import local_path
from gpuboot.conformance.suite_manifests import Request


@deploy("Conformance")
def conformance() -> None:
    """Run the suite, or look for evidence, on the leader; nothing on other hosts."""
    settings, lock, nodes = begin()
    leader = read_leader()
    if host.name != leader.host:
        return
    request = json.loads(os.environ["GPUBOOT_CONFORMANCE"])
    _, helper_image = local_path.images(lock)
    path, parent = os.environ["GPUBOOT_ANSWER"], int(os.environ["GPUBOOT_PARENT"])
    if not request:
        operations.evidenced(
            name="Look for evidence",
            settings=settings,
            leader=leader.host,
            nodes=[node for node in nodes if node.gpus],
            image=helper_image,
            path=path,
            parent=parent,
        )
    else:
        operations.conforming(
            name="Run the suite",
            leader=leader.host,
            request=Request(lock.kubernetes.version, helper_image, **request),
            path=path,
            parent=parent,
        )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    conformance()
