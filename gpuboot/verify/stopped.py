"""A verification that the cluster stopped: what was seen until then, and that the rest was not."""

from __future__ import annotations

from dataclasses import replace

from gpuboot.cluster.api import ClusterError
from gpuboot.config.settings import Settings
from gpuboot.verify.checks import control_plane_checks, host_checks, operating_system, proof_chain
from gpuboot.verify.checks.pod_remedies import refusal_remedy
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding
from gpuboot.verify.gaps import with_gaps
from gpuboot.verify.runner import VerificationResult

_UNREACHABLE = (
    "run deploys/site.py; where there is a cluster, see kubelet and kube-apiserver on the leader "
    "(`crictl ps -a`)"
)
_API_REJECTED = (
    "the API server answers, and refuses: mend what its message names (`gpuboot diagnose "
    "INVENTORY` may tell more of it), then verify again"
)


def stopped(
    error: ClusterError,
    evidence: Evidence,
    settings: Settings,
    before: VerificationResult | None = None,
) -> VerificationResult:
    """The result: what hosts say, what stopped it, and each link that nobody looked at.

    + evidence: of hosts and control planes
    + before: what was found before deep tests were stopped
    """
    is_rejected = error.status is not None
    remedy = refusal_remedy(str(error)) or (_API_REJECTED if is_rejected else _UNREACHABLE)
    cause = Finding(
        check="the API server takes what a verification makes"
        if is_rejected
        else "API server answers",
        link="workload" if is_rejected and settings.verify.level != "quick" else "allocatable",
        node="",
        gpu_uuid=None,
        status="fail",
        detail=str(error),
        remedy=remedy,
    )
    if before is None:
        mode = settings.runtime.mode
        below = [
            item
            for host in evidence.hosts
            for item in (*operating_system.evaluate(host, mode), *host_checks.evaluate(host))
        ]
        # expired certificates are a reason why
        control_plane_findings = control_plane_checks.evaluate(evidence, settings)
        links = proof_chain.required_links(evidence, settings)
        before = VerificationResult(evidence, (*below, *control_plane_findings), links)
    detail = f"not looked at, because the verification was stopped: {error}"
    findings = with_gaps(
        [*before.findings, cause], before.evidence.hosts, before.required_links, detail, remedy
    )
    return replace(before, findings=tuple(proof_chain.ordered(findings)))
