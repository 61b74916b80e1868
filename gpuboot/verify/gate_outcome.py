"""What a proof means for a node's gate: a pass opens it, a failure closes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from gpuboot.verify import node_proof
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding

# From the PCI bus to vectorAdd: whether pods can compute there. Monitoring that is broken keeps
# nobody from that.
LINKS = ("pci", "driver", "nvidia-smi", "runtime", "allocatable", "workload")
_CLOSING = (*LINKS, "health")  # a GPU that has to be repaired may well add vectors
Level = Literal["node", "standard"]
# arguments of `gpuboot-gate record`
Outcome = tuple[str, ...]


def outcome(
    node: str, boot: str, level: Level, uuids: Sequence[str], findings: Iterable[Finding]
) -> Outcome | None:
    """What findings mean for the gate of a node; None: nothing, it stays as it is.

    + boot: id of the boot in which it was proven; "": the present one
    + level: `node`: from the PCI bus to vectorAdd; `standard`: the whole chain
    + uuids: of its GPUs
    + findings: those of other nodes and links are passed over

    It opens where each of `LINKS` passed. GPUs that pods hold are not tried, and keep no node
    closed as long as one was tried.
    """
    of_node = [item for item in findings if item.node == node and item.link in _CLOSING]
    if failed := [item for item in of_node if item.status == "fail"]:
        return "close", node, _reason(failed, level), node_proof.cause(failed)
    gate_findings = [item for item in of_node if item.link in LINKS]
    passed = [item for item in gate_findings if item.status == "pass"]
    if {item.link for item in passed} != {*LINKS} or any(
        finding.status == "unknown" for finding in gate_findings
    ):
        return None
    proven = sorted(item.gpu_uuid or "" for item in passed if item.link == "workload")
    message = f"vectorAdd passed on {len(proven)} of {len(uuids)} GPUs"
    if level == "standard":
        message += ", by gpuboot verify"
    return "open", node, boot, level, ",".join(proven), message


def _reason(failed: Sequence[Finding], level: Level) -> str:
    """Why it is closed: what a pod that computes does not disprove stays, also over a reboot."""
    if any(item.link == "health" for item in failed):
        return "HealthFailed"
    return "VerifyFailed" if level == "standard" else "ProofFailed"


def of_node(
    node: str, findings: Sequence[Finding], problem: tuple[str, str] | None
) -> list[Outcome]:
    """What the proof of one node means for its gate. + problem: cause and remedy of a failure"""
    if problem is not None:
        return [("close", node, "ProofFailed", problem[0])]
    uuids = {item.gpu_uuid for item in findings if item.link == "workload" and item.gpu_uuid}
    gate_outcome = outcome(node, "", "node", sorted(uuids), findings)
    return [gate_outcome] if gate_outcome else []


def outcomes(evidence: Evidence, findings: Sequence[Finding]) -> list[Outcome]:
    """What a verification means for all GPU nodes."""
    results = []
    for host in evidence.hosts:
        node = evidence.nodes.get(host.node)
        if node is None:
            continue
        uuids = [device.uuid for device in host.devices]
        if gate_outcome := outcome(host.node, node.boot_id, "standard", uuids, findings):
            results.append(gate_outcome)
    return results
