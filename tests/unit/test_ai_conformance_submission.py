"""PRODUCT.yaml, as the programme's validator takes it, and the files beside it."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from gpuboot.conformance.ai import submission
from gpuboot.conformance.ai.evidence_requirements import LEVELS
from gpuboot.conformance.ai.evidence_results import (
    Outcome,
    Result,
    exit_code,
    from_json,
    open_musts,
)
from gpuboot.conformance.ai.folder import evidence_path, files
from gpuboot.conformance.ai.submission import ChecklistError, parse_checklist

# made up, in the form of the programme's file
CHECKLIST = """\
metadata:
  kubernetesVersion: v1.36
  platformName: "[Platform Name]"
spec:
  security:
    - {id: secure_accelerator_access, description: "As it is: \\"so\\"", level: MUST, status: "",
       evidence: [], notes: ""}
  schedulingOrchestration:
    - {id: cluster_autoscaling, description: If, level: MUST, status: "", evidence: [], notes: ""}
    - {id: gang_scheduling, description: All, level: MUST, status: "", evidence: [], notes: ""}
  accelerators:
    - {id: gpu_sharing, description: Parts, level: SHOULD, status: "", evidence: [], notes: ""}
    - {id: of_the_future, description: New, level: SHOULD, status: "", evidence: [], notes: ""}
"""
RESULTS = (
    Result("secure_accelerator_access", "pass", "Each saw its own.", ("gpu1: a & <b>",)),
    Result("cluster_autoscaling", "not_applicable", "No autoscaler."),
    Result("gang_scheduling", "pass", "All or none."),
    Result("gpu_sharing", "not_applicable", "No GPU is shared."),
)
OUTCOME = Outcome(RESULTS, "v1.36.3", "2026-11-26T10:00:00+00:00")
STATUSES = ("Implemented", "Not Implemented", "Partially Implemented", "N/A")


def refusals(text: str) -> list[str]:
    """What the programme's validator says of the requirements (scripts/validate.go)."""
    problems = []
    for category, items in yaml.safe_load(CHECKLIST)["spec"].items():
        products = {item["id"]: item for item in yaml.safe_load(text)["spec"][category]}
        for item in items:
            product = products[item["id"]]
            assert {key: product[key] for key in ("description", "level")} == {
                key: item[key] for key in ("description", "level")
            }
            if item["level"] == "SHOULD" and not product["status"] and not product["evidence"]:
                continue
            if product["status"] not in STATUSES:
                problems.append(f"Invalid status for {item['id']}")
            if item["level"] == "MUST" and product["status"] != "Implemented":
                problems.append(f"{item['id']} is MUST")
            if product["status"] == "N/A" and not product["notes"]:
                problems.append(f"Notes required for {item['id']}")
    return problems


def product(results: tuple[Result, ...] = RESULTS, version: str = "v1.36.3", **fields: Any) -> str:
    checklist = parse_checklist(CHECKLIST)
    paths = {name: evidence_path(name) for name in submission.levels(checklist)}
    return submission.product(checklist, results, version, paths, **fields)


def test_the_validator_takes_what_is_written() -> None:
    assert refusals(product()) == []
    document = yaml.safe_load(product())
    [access] = document["spec"]["security"]
    assert access["evidence"] == ["evidence/secure_accelerator_access.md"]
    assert document["metadata"]["kubernetesVersion"] == "v1.36.3"
    assert document["metadata"]["k8sConformanceUrl"].startswith("[")
    assert list(document["spec"]) == ["security", "schedulingOrchestration", "accelerators"]


def test_what_does_not_apply_is_said_in_the_notes_of_a_must() -> None:
    items = yaml.safe_load(product())["spec"]
    must, should = items["schedulingOrchestration"][0], items["accelerators"][0]
    assert (must["status"], must["notes"]) == ("Implemented", "Not applicable: No autoscaler.")
    assert (should["status"], should["notes"]) == ("N/A", "Not applicable: No GPU is shared.")
    assert items["accelerators"][1]["status"] == ""


@pytest.mark.parametrize("status", ["fail", "not_run"])
def test_a_must_without_evidence_claims_nothing(status: Any) -> None:
    results = (*RESULTS[:2], Result("gang_scheduling", status, "no"))
    [_, gang] = yaml.safe_load(product(results))["spec"]["schedulingOrchestration"]
    assert (gang["status"], gang["evidence"], gang["notes"]) == ("", [], "")
    assert refusals(product(results)) == [
        "Invalid status for gang_scheduling",
        "gang_scheduling is MUST",
    ]


def test_simulated_gpus_are_no_submission() -> None:
    assert product(simulated="SIMULATED driver").startswith("# SIMULATED, not for submission: ")


@pytest.mark.parametrize("text", ["", "a: [", "metadata: {}", "spec: {a: [{id: b}]}", "- a"])
def test_another_file_is_no_checklist(text: str) -> None:
    with pytest.raises(ChecklistError, match="no checklist"):
        parse_checklist(text)


def test_a_checklist_of_another_release_is_refused() -> None:
    with pytest.raises(ChecklistError, match=r"of Kubernetes v1.36, and the cluster runs v1.37.0"):
        product(version="v1.37.0")


@pytest.mark.parametrize(
    ("statuses", "code", "missing"),
    [
        ({"a": "pass", "b": "not_applicable", "c": "fail"}, 0, []),
        ({"a": "fail", "b": "pass"}, 1, ["a"]),
        ({"a": "fail", "b": "not_run"}, 1, ["a", "b"]),
        ({"a": "not_run", "b": "pass"}, 2, ["a"]),
        ({"a": "pass"}, 2, ["b"]),
    ],
)
def test_exit_codes_are_about_musts(
    statuses: dict[str, Any], code: int, missing: list[str]
) -> None:
    levels = {"a": "MUST", "b": "MUST", "c": "SHOULD"}
    results = [Result(name, status, "") for name, status in statuses.items()]
    assert exit_code(results, levels) == code
    assert open_musts(results, levels) == missing


def test_the_levels_of_1_36_are_eight_musts_and_six_shoulds() -> None:
    counts = [list(LEVELS.values()).count(level) for level in ("MUST", "SHOULD")]
    assert counts == [8, 6]


def test_there_is_a_file_for_each_requirement_and_the_page_links_it() -> None:
    contents = files(OUTCOME, LEVELS, "prod")
    assert {path for path in contents if path.startswith("evidence/")} == {
        evidence_path(name) for name in LEVELS
    }
    assert all(f'href="{evidence_path(name)}"' in contents["index.html"] for name in LEVELS)
    assert "gpu1: a & <b>" in contents["evidence/secure_accelerator_access.md"]
    assert "SIMULATED" not in "".join(contents.values())


def test_every_file_for_people_says_that_gpus_are_simulated() -> None:
    outcome = Outcome(RESULTS, "v1.36.3", "now", simulated="a SIMULATED driver")
    for path, text in files(outcome, LEVELS, "prod").items():
        assert path == "junit.xml" or "a SIMULATED driver" in text


def test_junit_and_json_have_all_results() -> None:
    results = (Result("gang_scheduling", "fail", "no\x00", remedy="mend"), *RESULTS[:2])
    contents = files(Outcome(results, "v1.36.3"), LEVELS, "prod")
    suite = ElementTree.fromstring(contents["junit.xml"])
    assert (suite.get("tests"), suite.get("failures")) == ("15", "1")
    [failure] = suite.iter("failure")
    assert (failure.get("message"), failure.text) == ("FAILED: no\ufffd", "mend")
    items = {item["id"]: item for item in json.loads(contents["results.json"])["results"]}
    assert items["gang_scheduling"]["level"] == "MUST"
    assert items["ai_inference"]["status"] == "not_run"


def test_the_answer_of_the_deploy_is_json() -> None:
    assert from_json(OUTCOME.to_json()) == OUTCOME
