"""The gate: its programs on hosts, and nodes that it closes or that are freed of it."""

from collections.abc import Mapping, Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, executing
from deploys.engine.operation import operation
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.cluster.pods_fact import GpuPods
from deploys.parts.files import operations as files
from deploys.parts.files.fact import Files
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.cluster import node_gate
from gpuboot.plan import Change, Effect

_ALL = (node_gate.PROGRAM, *node_gate.LEADER_FILES, node_gate.BOOT_PROGRAM, node_gate.BOOT_FILE)
_UNITS = (node_gate.TIMER, node_gate.BOOT_UNIT)


@operation()
def installed(
    programs: Mapping[str, str],
    contents: Mapping[str, str],
    started: Sequence[str] = (),
    at_boot: Sequence[str] = (),
) -> Commands:
    """Ensure that a host has these parts of the gate, and no other.

    + programs, contents: path -> text
    + started: units that run; at_boot: those that only have to start at boot
    """
    expected_paths = {*programs, *contents}
    obsolete_paths = [path for path in _ALL if path not in expected_paths]
    obsolete_units = [unit for unit in _UNITS if unit not in {*started, *at_boot}]
    foresee(
        [
            (host, Files, {"paths": list(programs)}),
            (host, Files, {"paths": list(contents)}),
            (host, Files, {"paths": obsolete_paths}),
            (host, Units, {"units": list(_UNITS)}),
        ]
    )
    present_units = read(Units, units=list(_UNITS))
    leaving = [unit for unit in obsolete_units if unit in present_units]
    for unit in leaving:
        # a kubelet that requires the unit of its boot would be stopped with it
        yield StringCommand(
            "systemctl disable", *(["--now"] if unit == node_gate.TIMER else []), unit
        )
    yield from files.present._inner(programs, mode="755", absent=obsolete_paths)
    changed = yield from files.of_units(contents)
    if leaving and not changed:
        yield StringCommand("systemctl daemon-reload")
    if started:
        yield from units.ensured(started)
    if at_boot:
        yield from units.ensured(at_boot, started=False)
    if changed and node_gate.TIMER in started:
        yield StringCommand("systemctl restart", node_gate.TIMER)


@operation()
def closed(nodes: Sequence[str]) -> Commands:
    """Ensure that those of these nodes take no new pods whose GPUs are not proven. On the leader.

    The timer would find them as well, half a minute later.
    """
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    open_nodes = [
        node.name
        for node in state.nodes
        if node.name in nodes and not node_gate.is_closed(node) and not node_gate.is_proven(node)
    ]
    changes.record(
        *[
            Change(subject=f"node {name}", field=f"taint {node_gate.TAINT}", new="set")
            for name in open_nodes
        ],
        *[
            Effect(kind="cordon", target=f"node {name}", note=_closed_for(name))
            for name in open_nodes
        ],
    )
    for name in open_nodes:
        yield StringCommand(
            node_gate.PROGRAM, "close", QuoteString(name), "NotProven",
            QuoteString("its GPUs have not been proven yet"),
        )  # fmt: skip
    if not open_nodes:
        host.noop("all GPU nodes are proven, or closed")


def _closed_for(node: str) -> str:
    """A few words for a plan on how long a node takes no new pods."""
    text = "no new pods until its GPUs are proven; its pods stay"
    pods = () if executing() else read(GpuPods, node=node)
    if pods is not None and not pods:
        return text
    names = "" if pods is None else f" (GPU pods: {', '.join(pods)})"
    return f"{text}; while they hold all of its GPUs{names}, none can be proven"


@operation()
def lifted() -> Commands:
    """Ensure that the gate, which is switched off, keeps pods off no node. On the leader."""
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    marked_nodes = [node for node in state.nodes if node_gate.is_marked(node)]
    for node in marked_nodes:
        changes.record(Change(subject=f"node {node.name}", field="gate", old="on"))
    for node in marked_nodes:
        name = QuoteString(node.name)
        if node_gate.is_closed(node):
            yield StringCommand(KUBECTL, "taint node", name, f"{node_gate.KEY}-")
        if node_gate.CORDON in node.annotations:
            yield StringCommand(KUBECTL, "uncordon", name)
        removed = " ".join(f"{key}-" for key in (*node_gate.PROVEN, node_gate.CORDON))
        yield StringCommand(KUBECTL, "annotate node", name, removed)
        if node_gate.CONDITION in node.conditions:
            yield StringCommand(
                KUBECTL, "patch node", name, "--subresource=status -p",
                QuoteString(node_gate.LIFTED_CONDITION),
            )  # fmt: skip
    if not marked_nodes:
        host.noop("no node has anything of the gate")
