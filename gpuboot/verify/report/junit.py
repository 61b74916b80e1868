"""JUnit XML: one suite per node and one for the cluster, one case per finding.

Alerts that fire stand in the suite's output.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from gpuboot.verify.findings import Finding
from gpuboot.verify.report.report_model import Report

# what XML 1.0 cannot hold, not even escaped; container logs do
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff￾￿]")


def printable(text: str) -> str:
    """The text with what XML cannot hold replaced."""
    return _FORBIDDEN.sub("\ufffd", text)


def junit(report: Report) -> str:
    """The report for CI systems: not covered is `skipped`, unknown is `error`."""
    root = ET.Element("testsuites", {"name": f"gpuboot verify {report.cluster}"})
    total: Sequence[Finding] = report.findings
    for name in dict.fromkeys(item.node for item in report.findings):
        of_node = [item for item in report.findings if item.node == name]
        suite = ET.SubElement(
            root,
            "testsuite",
            {"name": name or "cluster", "timestamp": report.started, **_counts(of_node)},
        )
        properties = ET.SubElement(suite, "properties")
        ET.SubElement(properties, "property", {"name": "level", "value": report.level})
        for item in of_node:
            _case(suite, item)
        if alerts := _alerts(report, name):
            ET.SubElement(suite, "system-out").text = printable(alerts)
    root.attrib.update(_counts(total))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _alerts(report: Report, node: str) -> str:
    """What fires there, a line each: no test case, since no alert decides about a proof."""
    gpus = [row.uuid for row in report.gpus if row.node == node and row.uuid] if node else []
    alerts = [item for uuid in ["", *gpus] for item in report.firing(node, uuid)]
    return "\n".join(
        f"alert {alert.name} fires ({alert.severity}, gpu_action {alert.action or 'none'})"
        f"{f' for {alert.gpu_uuid}' if alert.gpu_uuid else ''}: {alert.summary}"
        for alert in alerts
    )


def _counts(findings: Sequence[Finding]) -> dict[str, str]:
    statuses = [item.status for item in findings]
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("fail")),
        "errors": str(statuses.count("unknown")),
        "skipped": str(statuses.count("not_covered")),
        "time": f"{sum(item.seconds for item in findings):.3f}",
    }


def _case(suite: ET.Element, item: Finding) -> None:
    subject = item.gpu_uuid or item.node or "cluster"
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": f"{item.node or 'cluster'}.{item.link}",
            "name": f"{item.check} [{subject}]",
            "time": f"{item.seconds:.3f}",
        },
    )
    detail = printable(item.detail)
    if item.status == "pass":
        ET.SubElement(case, "system-out").text = detail
        return
    tag = {"fail": "failure", "unknown": "error", "not_covered": "skipped"}[item.status]
    child = ET.SubElement(case, tag, {"message": detail})
    child.text = f"remedy: {printable(item.remedy)}" if item.remedy else None
