"""What a verification closed, as the gate's timer sees it: in the same boot, and after another."""

from __future__ import annotations

from gpuboot.cluster import node_gate
from tests.unit.test_gate_scripts import Site, ago, closed, proven, site

__all__ = ["site"]  # pytest finds the fixture here

CLOSED = {
    "status": "False", "lastTransitionTime": ago(hours=2), "lastHeartbeatTime": ago(hours=2),
    "message": "GPU-a: a row remap failed",
}  # fmt: skip


def test_what_a_verification_closed_is_not_opened_by_a_pod_in_the_same_boot(site: Site) -> None:
    node = closed(condition=CLOSED | {"reason": "VerifyFailed"})
    assert site.look(node) == node


def test_a_gpu_that_calls_for_a_repair_keeps_its_node_closed_over_a_reboot(site: Site) -> None:
    failed = CLOSED | {"reason": "HealthFailed"}
    notes = proven()["annotations"] | {node_gate.CORDON: "b2"}
    node = site.look(proven(boot="b2", annotations=notes, cordoned=True, condition=failed))
    assert (node["taints"], node["cordoned"], site.state["pods"]) == ([node_gate.KEY], False, [])
    condition = {key: node["condition"][key] for key in ("status", "reason", "message")}
    assert condition == {key: failed[key] for key in condition}
    assert site.look(node) == node
