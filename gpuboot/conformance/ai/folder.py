"""The folder of a submission: a file of evidence for each requirement, JUnit, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from xml.etree import ElementTree as ET

from gpuboot.config.exit_codes import COULD_NOT_TELL, FAILED, OK
from gpuboot.conformance.ai.evidence_requirements import REQUIREMENTS, Requirement
from gpuboot.conformance.ai.evidence_results import WORDS, Outcome, Result, exit_code
from gpuboot.verify.report.junit import printable
from gpuboot.verify.report.page import page

PRODUCT = "PRODUCT.yaml"
_HEADLINES = {
    OK: "Every MUST has evidence, or does not apply",
    FAILED: "A MUST failed",
    COULD_NOT_TELL: "Not every MUST has evidence",
}
_BANNERS = {OK: "pass", FAILED: "fail", COULD_NOT_TELL: "not_covered"}
_TAGS = {"fail": "failure", "not_run": "skipped", "not_applicable": "skipped"}


def evidence_path(name: str) -> str:
    """Where the evidence of a requirement is, beside PRODUCT.yaml."""
    return f"evidence/{name}.md"


def files(outcome: Outcome, levels: Mapping[str, str], cluster: str) -> dict[str, str]:
    """Path -> content of everything but PRODUCT.yaml.

    + levels: requirement -> MUST, SHOULD or ""
    + cluster: its name, for people
    """
    results = dict(_results(outcome, levels))
    evidence = {
        evidence_path(name): _evidence(_requirement(name), result, outcome)
        for name, result in results.items()
    }
    return {
        **evidence,
        "junit.xml": _junit(results, cluster),
        "results.json": _json(results, outcome, levels, cluster),
        "index.html": page(
            "ai_conformance.html.j2",
            outcome=outcome,
            cluster=cluster,
            rows=[(_requirement(name), levels[name], item) for name, item in results.items()],
            words=WORDS,
            path=evidence_path,
            headline=_HEADLINES[(code := exit_code(outcome.results, levels))],
            banner=_BANNERS[code],
        ),
    }


def _results(outcome: Outcome, levels: Mapping[str, str]) -> Iterator[tuple[str, Result]]:
    """A result for every requirement, in the order of the levels."""
    by_id = {item.id: item for item in outcome.results}
    for name in levels:
        yield name, by_id.get(name, Result(name, "not_run", "gpuboot does not know it"))


def _requirement(name: str) -> Requirement:
    return REQUIREMENTS.get(name, Requirement(name, "", name, ""))


def _evidence(requirement: Requirement, result: Result, outcome: Outcome) -> str:
    lines = [f"# {requirement.title} (`{requirement.id}`)", ""]
    if outcome.simulated:
        lines += [f"**SIMULATED, no evidence of a real GPU:** {outcome.simulated}", ""]
    lines += [f"Result: **{WORDS[result.status]}**. {result.summary}", ""]
    if result.remedy:
        lines += [f"Remedy: {result.remedy}", ""]
    if result.observations:
        lines += ["What was seen:", "", "```text", *result.observations, "```", ""]
    source = f" The requirement: {requirement.source}" if requirement.source else ""
    lines += [
        f"Kubernetes {outcome.kubernetes}, {outcome.started}, by `gpuboot conformance`.{source}",
    ]
    return printable("\n".join(lines) + "\n")


def _junit(results: Mapping[str, Result], cluster: str) -> str:
    statuses = [item.status for item in results.values()]
    counts = {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("fail")),
        "skipped": str(statuses.count("not_run") + statuses.count("not_applicable")),
    }
    root = ET.Element("testsuites", {"name": "Kubernetes AI conformance", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": cluster, **counts})
    for name, item in results.items():
        case = ET.SubElement(suite, "testcase", {"classname": "ai-conformance", "name": name})
        if tag := _TAGS.get(item.status):
            message = printable(f"{WORDS[item.status]}: {item.summary}")
            ET.SubElement(case, tag, {"message": message}).text = printable(item.remedy)
        ET.SubElement(case, "system-out").text = printable("\n".join(item.observations))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _json(
    results: Mapping[str, Result], outcome: Outcome, levels: Mapping[str, str], cluster: str
) -> str:
    document = {
        "cluster": cluster,
        "kubernetes": outcome.kubernetes,
        "started": outcome.started,
        "simulated": outcome.simulated,
        "results": [{**asdict(item), "level": levels[name]} for name, item in results.items()],
    }
    return json.dumps(document, indent=1) + "\n"
