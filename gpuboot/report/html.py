"""The report as one HTML page without any other file."""

from __future__ import annotations

from gpuboot.checks.model import CLUSTER_LINKS, GPU_LINKS, Status
from gpuboot.report.model import Report, group
from gpuboot.report.page import page

MARKS = {"pass": "✓", "fail": "✗", "not_covered": "–", "unknown": "?"}
TROUBLES: tuple[Status, ...] = ("fail", "unknown", "not_covered")
WORDS = {"pass": "pass", "fail": "fail", "not_covered": "not covered", "unknown": "unknown"}
HEADLINES = {
    "proven": "Every GPU is proven",
    "failed": "The proof failed",
    "not_covered": "Not everything could be proven",
}


def html(report: Report) -> str:
    """The page: summary, chain, GPU matrix, failures with remedies, versions and durations."""
    troubles = [item for status in TROUBLES for item in group(report.of(status))]
    links = [link for link in GPU_LINKS if any(link in row.links for row in report.gpus)]
    return page(
        "verify.html.j2",
        report=report,
        troubles=troubles,
        passed=report.of("pass"),
        links=links,
        chain=[(link, GPU_LINKS[link], _counts(report, link)) for link in links],
        cluster_links=[
            (link, CLUSTER_LINKS[link], status) for link, status in report.cluster_links.items()
        ],
        details=_details(report),
        marks=MARKS,
        words=WORDS,
        headline=HEADLINES[report.verdict],
    )


def _counts(report: Report, link: str) -> dict[str, int]:
    states = [row.links[link] for row in report.gpus if link in row.links]
    return {status: states.count(status) for status in MARKS} | {"total": len(states)}  # type: ignore[arg-type]


def _details(report: Report) -> dict[tuple[str, str, str], str]:
    """(node, uuid, link) -> what was found; a node's own findings stand under uuid ""."""
    details: dict[tuple[str, str, str], str] = {}
    for item in report.findings:
        key = (item.node, item.gpu_uuid or "", item.link)
        details[key] = "\n".join(filter(None, (details.get(key), item.detail)))
    return details
