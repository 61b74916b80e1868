"""Nodes that the gate keeps closed: their GPUs are not proven."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.cluster.node_gate import CONDITION, KEY
from gpuboot.cluster.objects import Condition, taint_key
from gpuboot.diagnose.cause_model import Cause, Sighting
from gpuboot.diagnose.facts import Facts


def gate_closed(facts: Facts) -> Iterator[Sighting]:
    """Nodes with the gate's taint or label, and what their condition says of the proof."""
    for node in facts.cluster.nodes:
        marks = [f"taint {taint}" for taint in node.taints if taint_key(taint) == KEY]
        marks += [f"label {KEY}={node.labels[KEY]}"] if KEY in node.labels else []
        if marks:
            proof = node.conditions.get(CONDITION, Condition())
            condition = (f"{CONDITION} is {proof.status}: {proof.message}",) if proof.status else ()
            yield Sighting(node=node.name, evidence=(*marks, *condition))


TABLE = (
    Cause(
        id="gate-closed",
        meaning="a node takes no new pods: the gate keeps it closed until its GPUs are proven",
        find=gate_closed,
        remedy="mend what its condition names; the gate proves and opens it by itself, or "
        "`gpuboot verify INVENTORY --nodes NODE` proves it now",
        command=f"kubectl describe node {{node}} | grep -E '{CONDITION}|{KEY}'",
        explains=("pending-taint",),
    ),
)
