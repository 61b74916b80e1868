"""Proves the GPUs. `pyinfra inventories/<site>.py deploys/verify.py -y`, or `gpuboot verify`.

The last phase of deploys/site.py and deploys/standalone.py, and a deploy of its own that touches
nothing else.
"""

from __future__ import annotations

from pyinfra.context import host, state

from deploys.lib.operation import phase
from deploys.lib.privilege import become_arguments
from deploys.operations import verify as verify_cluster
from deploys.operations import verify_docker
from deploys.operations.verify import Found
from deploys.run import report
from deploys.run.context import begin, read


@phase("Verify")
def verify(always: bool = False) -> None:
    """Verify every GPU, from the PCI bus to Prometheus. Runs when all else is done, on one host:
    the leader of a cluster, the monitoring host of Docker hosts.

    + always: also where `verify.enabled` is off, because somebody asked for just this
    """
    settings, lock, nodes = begin()
    if sum(node.role == "control_plane" for node in nodes) > 1:
        nodes = read().nodes  # which of them leads is known when they have answered
    verifier = next(node for node in nodes if node.leader or node.monitor)
    if host.name != verifier.host or not (always or settings.verify.enabled):
        return
    # not current(): a host that cannot be read is a finding here, and no reason to stop
    if become_arguments(host).get("_sudo"):
        read()  # before any other command: it finds out where sudo would wait for a password
    title = "Verify every GPU, from the PCI bus to Prometheus"
    if verifier.monitor:
        verify_docker.chain(name=title, settings=settings, lock=lock, nodes=read().nodes)
    else:
        verify_cluster.chain(
            name=title,
            settings=settings,
            lock=lock,
            nodes=nodes,
            # alone, nothing has changed a host since it was read
            find=lambda: Found(read().nodes, read().states if always else {}),
        )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    report.watch(state, begin()[0])
    verify(always=True)
