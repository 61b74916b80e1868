"""Keeps free GPUs busy for a while. Run by `gpuboot load`; what it makes it removes.

$GPUBOOT_LOAD holds what is wanted, as JSON; $GPUBOOT_ANSWER names the file that gets what became of
it; $GPUBOOT_PARENT is the number of the process with whose end it ends.
"""

import json
import os

from pyinfra.api.deploy import deploy
from pyinfra.api.exceptions import DeployError
from pyinfra.context import host

from deploys.parts.load import operations as operations
from deploys.run.context import begin, read_leader
from gpuboot.config.problems import render
from gpuboot.verify.levels import Scope
from gpuboot.verify.load.load_pods import LoadRequest


@deploy("Load")
def load() -> None:
    """Keep GPUs busy from the leader; nothing on other hosts."""
    settings, _, nodes = begin()
    request = json.loads(os.environ["GPUBOOT_LOAD"])
    scope = Scope(nodes=tuple(request.pop("nodes")))
    if problems := scope.problems(nodes):
        raise DeployError(render(problems))
    leader = read_leader()
    if host.name == leader.host:
        operations.loaded(
            name="Keep free GPUs busy",
            settings=settings,
            leader=leader.host,
            nodes=scope.selected(nodes),
            request=LoadRequest(**request),
            path=os.environ["GPUBOOT_ANSWER"],
            parent=int(os.environ["GPUBOOT_PARENT"]),
        )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    load()
