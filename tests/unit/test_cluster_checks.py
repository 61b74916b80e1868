"""Checks of the cluster that are one file: on what the API answers, and a new one from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster.api import ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.verify.checks import cluster_checks
from gpuboot.verify.checks.one_file import Answer, ClusterCheck
from gpuboot.verify.checks.one_file_checks import CLUSTER_CHECKS
from gpuboot.verify.collector import MetricsCollector
from tests.documents import ROOT
from tests.unit.fake_cluster import FakeCluster
from tests.unit.one_file_checks import KINDS, cases, file_names, parameters, run_check_script

CASES = ROOT / "tests/cluster_checks"


@pytest.mark.parametrize(("check", "case"), parameters(CLUSTER_CHECKS, CASES))
def test_a_check_on_what_the_api_answers(check: ClusterCheck, case: dict[str, Any]) -> None:
    answers = {check.link.name: Answer(case["printed"].encode())}
    findings = [item for item in cluster_checks.evaluate(answers) if item.link == check.link.name]
    assert {item.node: item.status for item in findings} == case["expected"]
    for item in findings:
        assert item.status == "pass" or item.remedy
        assert item.status != "fail" or item.remedy.startswith(check.link.remedy)
    assert case["says"] in " ".join(item.detail for item in findings)


@pytest.mark.parametrize("check", CLUSTER_CHECKS, ids=lambda check: check.link.name)
def test_a_check_has_cases_of_every_kind(check: ClusterCheck) -> None:
    assert {case["kind"] for case in cases(CASES, check)} == KINDS


def test_cases_are_of_checks() -> None:
    assert file_names(CASES) == {check.link.name for check in CLUSTER_CHECKS}


def test_nobody_asked_says_nothing_and_no_answer_is_unknown() -> None:
    assert cluster_checks.evaluate(None) == []
    unanswered = cluster_checks.evaluate({})
    assert {(item.link, item.status) for item in unanswered} == {
        (check.link.name, "unknown") for check in CLUSTER_CHECKS
    }
    assert all("kubectl get --raw" in item.remedy for item in unanswered)


def test_a_question_that_fails_keeps_its_error() -> None:
    class Silent(FakeCluster):
        def get(self, path: str, query: object = None) -> bytes:
            raise ClusterError(f"GET {path}: no answer within 20 s")

    answers = MetricsCollector(Silent(), parse_settings({})).answers()  # type: ignore[arg-type]
    (finding,) = [item for item in cluster_checks.evaluate(answers) if item.link == "nodes"]
    assert (finding.status, finding.detail) == (
        "unknown",
        "GET /api/v1/nodes: no answer within 20 s",
    )


NEW = """
from gpuboot.verify.checks.one_file import ClusterCheck
from gpuboot.verify.checks.one_file import Link
from gpuboot.verify.checks.one_file import CheckVerdict

def _evaluate(answer):
    names = [item["metadata"]["name"] for item in answer["items"]]
    if "nvidia" in names:
        return [CheckVerdict(status="pass", detail="it is there")]
    return [CheckVerdict(status="fail", detail=f"among {names}", remedy="create the RuntimeClass")]

CHECK = ClusterCheck(
    link=Link(
        name="runtimeclass", passes="pods can ask for NVIDIA's runtime", facts="RuntimeClasses",
        fails="there is none", remedy="create the", subject="cluster", docker=False,
    ),
    behind="services",
    path="/apis/node.k8s.io/v1/runtimeclasses",
    evaluate=_evaluate,
)
"""
SCRIPT = """
import json, sys
from dataclasses import replace
from gpuboot.verify.checks import of_cluster
of_cluster.__path__.append(sys.argv[1])
from gpuboot.config.settings import parse_settings
from gpuboot.docs.checks_page import checks_markdown
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.checks.one_file import Answer
from gpuboot.verify.checks.one_file_checks import CLUSTER_CHECKS
from gpuboot.verify.report import build
from tests.unit.evidence import evidence
from tests.unit.reports import text
answers = {"runtimeclass": Answer(b'{"items": [{"metadata": {"name": "kata"}}]}')}
seen = replace(evidence(), answers=answers)
found = proof_chain.evaluate(seen, parse_settings({}))
links = proof_chain.required_links(seen, parse_settings({}))
report = build("lab", "2026-11-21T14:00:00Z", 3.1, seen.hosts, found, links)
print(json.dumps({
    "found": [(f.status, f.detail) for f in found if f.link == "runtimeclass"],
    "text": text(report), "docs": checks_markdown(), "verdict": report.verdict,
    "paths": [check.path for check in CLUSTER_CHECKS],
}))
"""


def test_a_new_check_is_one_file(tmp_path: Path) -> None:
    output = run_check_script(tmp_path, "runtimeclass", NEW, SCRIPT)
    assert output["found"] == [["fail", "among ['kata']"]]
    assert output["verdict"] == "failed"
    assert "create the RuntimeClass" in output["text"]
    assert (
        "| `runtimeclass` | pods can ask for NVIDIA's runtime | RuntimeClasses |" in output["docs"]
    )
    assert "/apis/node.k8s.io/v1/runtimeclasses" in output["paths"]
