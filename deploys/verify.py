"""Proves the GPUs. `pyinfra inventories/<site>.py deploys/verify.py -y`, or `gpuboot verify`.

The last phase of deploys/site.py and deploys/standalone.py, and a deploy of its own that touches
nothing else. Alone it takes `--data gpuboot_level=quick|standard|deep` in the place of
`verify.level`, `--data gpuboot_nodes=NAME,...` for some of the nodes,
`--data gpuboot_resume=yes` to go on with deep tests that were ended, and
`--data gpuboot_test_alert=critical|warning|info` to send a test alert to a receiver.
"""

from collections.abc import Sequence

from pyinfra.api.exceptions import DeployError
from pyinfra.context import host, state

from deploys.engine.operation import phase
from deploys.engine.privilege import become_arguments
from deploys.parts.verify import docker_operations as verify_docker
from deploys.parts.verify import operations as verify_cluster
from deploys.parts.verify.verify_hosts import Discovery
from deploys.run import report
from deploys.run.context import begin, read
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem, render
from gpuboot.verify import levels

_NO_DEEP = Problem(
    "", "the level deep is tried in clusters only: its tests run in pods", "take --level standard"
)


@phase("Verify")
def verify(always: bool = False) -> None:
    """Verify every GPU, from the PCI bus to Prometheus. Runs when all else is done, on one host:
    the leader of a cluster, the monitoring host of Docker hosts.

    + always: also where `verify.enabled` is off, because somebody asked for just this; then at the
      level and for the nodes that were asked for. What a run has made is proven at `standard`.
    """
    settings, lock, nodes = begin()
    scope = _requested_scope(nodes) if always else levels.Scope(level="standard")
    settings = levels.with_level(settings, scope.level or settings.verify.level)
    if sum(node.role == "control_plane" for node in nodes) > 1:
        nodes = read().nodes  # which of them leads is known when they have answered
    verifier = next(node for node in nodes if node.leader or node.monitor)
    if host.name != verifier.host or not (always or settings.verify.enabled):
        return
    # not current(): a host that cannot be read is a finding here, and no reason to stop
    if become_arguments(host).get("_sudo"):
        read()  # before any other command: it finds out where sudo would wait for a password
    title = "Verify every GPU, from the PCI bus to Prometheus"
    if verifier.monitor and settings.verify.level == "deep":
        raise DeployError(render([_NO_DEEP]))
    if verifier.monitor:
        verify_docker.chain(
            name=title, settings=settings, lock=lock, nodes=read().nodes, scope=scope
        )
    else:
        verify_cluster.chain(
            name=title,
            settings=settings,
            lock=lock,
            nodes=nodes,
            # alone, nothing has changed a host since it was read
            find=lambda: Discovery(read().nodes, read().states if always else {}),
            scope=scope,
        )


def _requested_scope(nodes: Sequence[Node]) -> levels.Scope:
    """What `--data` asks for. Raises `DeployError`."""
    names = ("level", "nodes", "resume", "test_alert")
    values = {name: str(host.data.get(f"gpuboot_{name}") or "") for name in names}
    try:
        scope = levels.scope(**values)
    except ValueError as error:
        remedy = "--data gpuboot_level=LEVEL, --data gpuboot_test_alert=SEVERITY"
        problem = Problem("", str(error), remedy)
        raise DeployError(render([problem])) from None
    if problems := scope.problems(nodes):
        raise DeployError(render(problems))
    return scope


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    report.watch(state, begin()[0])
    verify(always=True)
