"""The gate: GPU nodes take no pods before their GPUs are proven."""

from importlib.metadata import version

from deploys.engine.operation import phase
from deploys.parts.gate import operations as operations
from deploys.run.context import Context, current
from gpuboot.cluster import node_gate as parts
from gpuboot.verify.workload_pods import gate_pod


@phase("Gate")
def gate() -> None:
    """Close GPU nodes that are not proven; the verification, or the leader's timer, opens them."""
    context = current()
    enabled, node = context.settings.gate.enabled, context.node
    if node.leader and not enabled:
        operations.lifted(name="Keep pods off no node for want of a proof")
    if enabled:
        _installed(context)
    else:
        operations.installed(name="Remove the gate's programs", programs={}, contents={})
    if node.leader and enabled:
        operations.closed(
            name="Close GPU nodes that are not proven",
            nodes=[item.name for item in context.nodes if item.gpus],
        )


def _installed(context: Context) -> None:
    settings, node = context.settings, context.node
    programs: dict[str, str] = {}
    contents: dict[str, str] = {}
    started: list[str] = []
    at_boot: list[str] = []
    if node.leader:
        programs[parts.PROGRAM] = parts.program()
        contents |= parts.leader_files(settings, version("gpuboot"), gate_pod(settings))
        started.append(parts.TIMER)
    if node.gpus:
        programs[parts.BOOT_PROGRAM] = parts.boot_program()
        contents |= parts.boot_files(node)
        # on a control plane, starting it now would take the node out of service
        (at_boot if node.role == "control_plane" else started).append(parts.BOOT_UNIT)
    operations.installed(
        name="Install the gate's programs",
        programs=programs,
        contents=contents,
        started=started,
        at_boot=at_boot,
    )
