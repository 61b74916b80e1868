"""The verification as one HTML page without any other file."""

from __future__ import annotations

from collections.abc import Callable

from gpuboot.verify.findings import CLUSTER_LINKS, GRAVITY, ROW_LINKS
from gpuboot.verify.firing_alerts import FiringAlert
from gpuboot.verify.report.cases import Case, cases
from gpuboot.verify.report.page import page
from gpuboot.verify.report.report_model import GpuRow, InstanceRow, Report

MARKS = {"pass": "✓", "fail": "✗", "not_covered": "–", "unknown": "?"}
WORDS = {"pass": "pass", "fail": "fail", "not_covered": "not covered", "unknown": "unknown"}
_MOST_DETAILS, _MOST_NAMES = 12, 6  # of one link of the cluster
HEADLINES = {
    "proven": "Every GPU is proven",
    "answering": "Every GPU answers; nothing was computed",
    "failed": "The proof failed",
    "not_covered": "Not everything could be proven",
}
BANNERS = {
    "proven": "pass",
    "answering": "pass",
    "failed": "fail",
    "not_covered": "not_covered",
}
# The alert whose runbook tells more about a broken link.
RUNBOOKS = {
    "pci": "GPULost",
    "nvidia-smi": "GPULost",
    "allocatable": "GPUDeviceUnhealthy",
    "exporter": "GPUExporterDown",
    "health": "GPUHealthFail",
    "prometheus": "GPUMetricsMissing",
    "services": "ClusterServicesUnreachable",
}


def html(report: Report) -> str:
    """The page: what is wrong first, alerts, then the GPUs, the chain, versions and durations."""
    links = [link for link in ROW_LINKS if any(link in row.links for row in report.gpus)]
    alerts_by_gpu = {row.uuid: report.firing(row.node, row.uuid) for row in report.gpus if row.uuid}
    rows = sorted(report.gpus, key=lambda row: GRAVITY.index(row.status))
    open_ = [row for row in rows if row.status != "pass" or alerts_by_gpu.get(row.uuid)]
    return page(
        "verify.html.j2",
        report=report,
        cases=cases(report.findings, report.parents),
        alerts=_alert_locations(report),
        alerts_by_gpu=alerts_by_gpu,
        passed=report.with_status("pass"),
        links=links,
        chain=[(link, ROW_LINKS[link], _counts(report, link)) for link in links],
        cluster_links=[
            (link, CLUSTER_LINKS[link], status, _cluster_details(report, link))
            for link, status in report.cluster_links.items()
        ],
        rows=open_ or rows,
        proven=[row for row in rows if row not in open_] if open_ else [],
        said=_details_by_cell(report),
        runbook=_runbook(report),
        marks=MARKS,
        words=WORDS,
        headline=HEADLINES[report.verdict],
        banner=BANNERS[report.verdict],
    )


def _runbook(report: Report) -> Callable[[Case], str]:
    """The page about what a case begins with: its address or path, or "" where there is none."""

    def runbook(case: Case) -> str:
        name = RUNBOOKS.get(case.cause.links[0], "") if case.status == "fail" else ""
        return f"{report.runbooks.rstrip('/')}/{name}.md" if name and report.runbooks else ""

    return runbook


def _alert_locations(report: Report) -> list[tuple[str, GpuRow | None, FiringAlert]]:
    """Each alert with where it fires: (node, GPU). The gravest first, as the report has them."""
    rows_by_uuid = {row.uuid: row for row in report.gpus if row.uuid}
    return [
        (rows_by_uuid[item.gpu_uuid].node if item.gpu_uuid in rows_by_uuid else item.node,
         rows_by_uuid.get(item.gpu_uuid), item)
        for item in report.alerts or ()
    ]  # fmt: skip


def _counts(report: Report, link: str) -> dict[str, int]:
    states = [row.links[link] for row in report.gpus if link in row.links]
    return {status: states.count(status) for status in MARKS} | {"total": len(states)}  # type: ignore[arg-type]


def _details_by_cell(report: Report) -> Callable[[GpuRow | InstanceRow, str, str], str]:
    """What was found for a GPU or MIG device at a link; where that is nothing, for its node."""
    details, parents = _details(report), report.parents

    def cell_text(row: GpuRow | InstanceRow, node: str, link: str) -> str:
        if isinstance(row, GpuRow):
            uuids = [row.uuid, *(item.uuid for item in row.instances)]
        else:
            uuids = [row.uuid, parents[row.uuid]]
        of_gpu = [text for uuid in uuids if uuid for text in details.get((node, uuid, link), [])]
        return "; ".join(dict.fromkeys(of_gpu or details.get((node, "", link), [])))

    return cell_text


def _cluster_details(report: Report, link: str) -> list[str]:
    """What was found at a link of the cluster, the gravest first, with the nodes that it is of."""
    nodes: dict[tuple[str, str], list[str]] = {}
    findings = [item for item in report.findings if item.link == link]
    for item in sorted(findings, key=lambda item: GRAVITY.index(item.status)):
        of_detail = nodes.setdefault((item.status, item.detail or item.check), [])
        if item.node and item.node not in of_detail:
            of_detail.append(item.node)
    texts = [
        f"{_names(of_detail)}: {detail}" if of_detail else detail
        for (_, detail), of_detail in nodes.items()
    ]
    remaining = len(texts) - _MOST_DETAILS
    return texts if remaining <= 0 else [*texts[:_MOST_DETAILS], f"and {remaining} more"]


def _names(nodes: list[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= _MOST_NAMES else f"{len(nodes)} nodes"


def _details(report: Report) -> dict[tuple[str, str, str], list[str]]:
    """(node, uuid, link) -> what was found; a node's own findings stand under uuid ""."""
    details: dict[tuple[str, str, str], list[str]] = {}
    for item in report.findings:
        texts = details.setdefault((item.node, item.gpu_uuid or "", item.link), [])
        if item.detail and item.detail not in texts:
            texts.append(item.detail)
    return details
