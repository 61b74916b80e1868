"""A finding: the result of one check of one link, for one GPU, one node or the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gpuboot.verify.checks import links
from gpuboot.verify.checks.one_file import CheckVerdict, Link

Status = Literal["pass", "fail", "not_covered", "unknown"]
Verdict = Literal["proven", "answering", "failed", "not_covered"]
# the gravest first
GRAVITY: tuple[Status, ...] = ("fail", "unknown", "not_covered", "pass")

GPU_LINKS = links.of("card", "device")
PHYSICAL_LINKS = tuple(links.of("card"))
DEEP_LINKS = links.of("deep")
ROW_LINKS = {**GPU_LINKS, **DEEP_LINKS}  # of a GPU in a report
CLUSTER_LINKS = links.of("cluster")
LINKS = {**ROW_LINKS, **CLUSTER_LINKS}
# the detail of a finding about a link that no check reached
NOT_REACHED = "not reached: a lower link is broken"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check.

    + check: what was compared, in a few words
    + link: key of `LINKS`
    + node: Kubernetes node name; "" for the whole cluster
    + gpu_uuid: the GPU, or the MIG device (`MIG-…`) where the link is about what pods hold; None
      when it is about the node or the cluster
    + status: `not_covered`: could not be tried (busy, cordoned, a lower link failed);
      `unknown`: tried, and the answer is missing. Neither is a pass.
    + detail: what the check saw, with the values
    + remedy: what a person can do; "" on a pass
    + seconds: how long finding out took; 0 where it came with something else
    """

    check: str
    link: str
    node: str
    gpu_uuid: str | None
    status: Status
    detail: str
    remedy: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.link not in LINKS:
            raise ValueError(f"{self.link!r} is no link of the chain")
        if self.status == "fail" and not self.remedy:
            raise ValueError(f"a failure without a remedy: {self.check}: {self.detail}")

    def to_json(self) -> dict[str, Any]:
        """The finding as the report's JSON has it."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


def from_json(item: dict[str, Any]) -> Finding:
    """The inverse of `Finding.to_json`. Raises TypeError for missing or unknown keys."""
    return Finding(**item)


def from_file(link: Link, verdict: CheckVerdict, node: str) -> Finding:
    """What a check that is one file says, as a finding. + node: "" for the whole cluster"""
    return Finding(
        check=link.passes,
        link=link.name,
        node=node,
        gpu_uuid=verdict.uuid,
        status=verdict.status,
        detail=verdict.detail,
        remedy=verdict.remedy,
    )


class FindingBuilder:
    """Builds the findings of one check on one node, so that checks name only what differs."""

    def __init__(self, link: str, check: str, node: str = "", seconds: float = 0.0) -> None:
        self._template = Finding(
            check=check,
            link=link,
            node=node,
            gpu_uuid=None,
            status="unknown",
            detail="",
            remedy="",
            seconds=seconds,
        )

    def passed(self, detail: str, uuid: str | None = None) -> Finding:
        return replace(self._template, status="pass", detail=detail, gpu_uuid=uuid)

    def failed(self, detail: str, remedy: str, uuid: str | None = None) -> Finding:
        return replace(self._template, status="fail", detail=detail, remedy=remedy, gpu_uuid=uuid)

    def not_covered(self, detail: str, remedy: str = "", uuid: str | None = None) -> Finding:
        return replace(
            self._template, status="not_covered", detail=detail, remedy=remedy, gpu_uuid=uuid
        )

    def unknown(self, detail: str, remedy: str = "", uuid: str | None = None) -> Finding:
        return replace(
            self._template, status="unknown", detail=detail, remedy=remedy, gpu_uuid=uuid
        )


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The findings as one word; no GPU that passed anything is not a proof."""
    all_findings = list(findings)
    statuses = {finding.status for finding in all_findings}
    if "fail" in statuses:
        return "failed"
    if statuses == {"pass"} and any(finding.gpu_uuid for finding in all_findings):
        return "proven"
    return "not_covered"


def worst(findings: Sequence[Finding]) -> Status:
    """The gravest status: fail, then unknown, then not_covered, then pass."""
    statuses = {finding.status for finding in findings}
    return next((status for status in GRAVITY if status in statuses), "unknown")
