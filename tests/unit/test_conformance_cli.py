"""`gpuboot conformance`: what it asks for, what it tells, and its exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.conformance.ai.evidence_requirements import LEVELS
from gpuboot.conformance.ai.evidence_results import Outcome as AiOutcome
from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.conformance.suite_runner import Outcome

CASE = '<testcase name="[It] {name}" status="{status}">{inner}</testcase>'
PASSED = CASE.format(name="DNS works [Conformance]", status="passed", inner="")
FAILURE = CASE.format(
    name="Pods run [Conformance]", status="failed", inner='<failure message="">late\nat x</failure>'
)


def files(*cases: str) -> dict[str, str]:
    return {"e2e.log": "•", "junit_01.xml": f"<testsuites>{''.join(cases)}</testsuites>"}


def run(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome | AiOutcome, *words: str
) -> tuple[int, str, dict[str, Any]]:
    """Exit code, output, and what the deploy was asked for."""
    requested: dict[str, Any] = {}

    def pyinfra(
        inventory: str, deploy: str, options: list[str], variables: dict[str, str], **keywords: Any
    ) -> runs.PyinfraResult:
        requested.update(json.loads(variables["GPUBOOT_CONFORMANCE"]), **keywords, deploy=deploy)
        assert int(variables["GPUBOOT_PARENT"]) == os.getpid()
        return runs.PyinfraResult(0, outcome.to_json(), "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    result = CliRunner().invoke(app, ["conformance", "inventories/prod.py", *words])
    return result.exit_code, result.output, requested


@pytest.mark.parametrize(
    ("outcome", "code", "expected"),
    [
        (Outcome(files(PASSED), 0), 0, "1 passed, 0 failed, 0 skipped; the suite's exit code 0"),
        (Outcome(files(PASSED, FAILURE), 1), 1, "FAILED Pods run [Conformance]\n    late\n"),
        (Outcome(files(PASSED), 1), 1, "1 passed, 0 failed, 0 skipped; the suite's exit code 1"),
        (Outcome(files(), 0), 1, "0 passed"),
        (Outcome(error="no node\n    remedy: uncordon nodes"), 2, "remedy: uncordon nodes"),
        (Outcome({**files(), "junit_01.xml": "<"}, 1), 2, "JUnit file cannot be read"),
        (Outcome(stopped=True), 130, "ended before its time"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: Outcome, code: int, expected: str
) -> None:
    words = ("--kubernetes", "--out", str(tmp_path / "out"))
    exit_code, output, requested = run(monkeypatch, outcome, *words)
    assert exit_code == code
    assert expected in output
    assert requested["tidies"]
    assert requested["deploy"] == "deploys/conformance.py"


def test_the_suite_s_files_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ("--kubernetes", "--processes", "6", "--focus", "DNS", "--out", str(tmp_path / "out"))
    _, output, requested = run(monkeypatch, Outcome(files(PASSED), 0), *words)
    assert {name: requested[name] for name in ("processes", "focus")} == {
        "processes": 6,
        "focus": "DNS",
    }
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"e2e.log", "junit_01.xml"}
    assert f"files: {tmp_path / 'out'}" in output


def test_a_folder_that_cannot_be_written_is_said_and_the_result_still_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    words = ("--kubernetes", "--out", str(tmp_path / "file"))
    code, output, _ = run(monkeypatch, Outcome(files(PASSED), 0), *words)
    assert code == 3
    assert "1 passed, 0 failed" in output
    assert "files:" not in output


CHECKLIST = """\
metadata: {kubernetesVersion: v1.36}
spec:
  all:
    - {id: dra_support, description: d, level: MUST, status: "", evidence: [], notes: ""}
    - {id: gang_scheduling, description: g, level: MUST, status: "", evidence: [], notes: ""}
"""
EVIDENCED = Result("dra_support", "pass", "served")
NOT_RUN = Result("gang_scheduling", "not_run", "no Kueue", remedy="install Kueue")
GANG = Result("gang_scheduling", "pass", "all or none")
ALL_MUSTS = tuple(Result(name, "pass", "so") for name in LEVELS)


@pytest.mark.parametrize(
    ("outcome", "has_checklist", "code", "expected"),
    [
        (AiOutcome(ALL_MUSTS, "v1.36.3"), False, 0, "no PRODUCT.yaml: it takes"),
        (AiOutcome((*ALL_MUSTS[1:-1],), "v1.36.3"), False, 0, "MUST   ai_inference: evidenced"),
        (AiOutcome((EVIDENCED, NOT_RUN), "v1.36.3"), False, 2, "remedy: install Kueue"),
        (AiOutcome((EVIDENCED, GANG), "v1.36.3"), True, 0, "gang_scheduling: evidenced"),
        (AiOutcome((EVIDENCED, NOT_RUN), "v1.36.3"), True, 1, "no status for gang_scheduling"),
        (AiOutcome((EVIDENCED, GANG), "v1.37.0"), True, 2, "it is of Kubernetes v1.36"),
        (AiOutcome(ALL_MUSTS, "v1.36.3", simulated="a stand-in"), False, 0, "SIMULATED"),
        (AiOutcome(error="another verification\n    remedy: wait"), False, 2, "remedy: wait"),
        (AiOutcome(stopped=True), False, 130, "ended before its time"),
    ],
)
def test_ai_conformance_ends_by_its_musts(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    outcome: AiOutcome,
    has_checklist: bool,
    code: int,
    expected: str,
) -> None:
    checklist, out = tmp_path / "AIConformance-1.36.yaml", tmp_path / "out"
    checklist.write_text(CHECKLIST, encoding="utf-8")
    words = ["--out", str(out), *(["--checklist", str(checklist)] if has_checklist else [])]
    exit_code, output, requested = run(monkeypatch, outcome, *words)
    assert (exit_code, expected in output) == (code, True)
    assert requested.keys() == {"capture_output", "tidies", "deploy"}
    is_written = not (outcome.stopped or outcome.error)
    assert (out / "results.json").exists() == is_written
    is_of_release = outcome.kubernetes == "v1.36.3"
    assert (out / "PRODUCT.yaml").exists() == (has_checklist and is_of_release)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--focus", "DNS"], "are about --kubernetes"),
        (["--processes", "2"], "are about --kubernetes"),
        (["--kubernetes", "--checklist", "a.yaml"], "leave --kubernetes out"),
        (["--checklist", "/nowhere/a.yaml"], "k8s-ai-conformance"),
    ],
)
def test_options_of_the_other_suite_are_refused(
    monkeypatch: pytest.MonkeyPatch, words: list[str], expected: str
) -> None:
    code, output, requested = run(monkeypatch, Outcome(), *words)
    assert (code, requested) == (2, {})
    assert expected in output.replace("\n", " ")
