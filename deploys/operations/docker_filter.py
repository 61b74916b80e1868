"""Docker's packet filter, beside a pod network that accepts its packets in a table of its own."""

from __future__ import annotations

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.facts.docker_filter import CHAIN, DroppedPods, program
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands
from deploys.lib.operation import operation
from gpuboot.plan import Change


@operation()
def pods_let_through(pods: str) -> Commands:
    """Ensure that Docker's chain for users lets pods pass, where its policy drops the rest.

    It is asked before the policy is, and kept by Docker. Docker sets the policy where it finds
    forwarding off as it starts; with our kernel settings it does not find so after a boot, and
    there is nothing to let through then.

    + pods: network of all pods
    """
    missing = read(DroppedPods, pods=pods)
    if not missing:
        host.noop("Docker's packet filter drops no packet of pods")
        return
    changes.record(Change(subject=f"iptables chain {CHAIN}", new=f"packets of {pods} pass"))
    for side in missing:
        yield StringCommand(f"{program(pods)} -w 5 -I {CHAIN} {side} {pods} -j ACCEPT")
