"""What a deploy makes of deep tests: their findings in the chain, their files in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyinfra.api.exceptions import PyinfraError

from deploys.parts.verify import verify_deep
from gpuboot.cluster.api import Cluster
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.deep import deep_files, deep_runner, gpu_state_at_work
from gpuboot.verify.deep.deep_answers import Answer, DeepAnswers, NodeAnswers
from gpuboot.verify.findings import DEEP_LINKS
from gpuboot.verify.runner import VerificationResult
from tests.unit.evidence import evidence

SETTINGS = parse_settings({"cluster": {"name": "lab"}, "verify": {"level": "deep"}})
NODES = [Node(f"10.0.0.{i}", f"gpu{i}", f"10.0.0.{i}", "worker", 2, False) for i in (1, 2)]
HUNG = {"diag": Answer(ended="hung", reason="no answer within 60 s")}


@pytest.fixture
def runner_arguments(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the runner is given; each node's diagnosis hangs."""
    arguments: dict[str, Any] = {}

    def run_tests(cluster: Any, hosts: Any, settings: Any, say: Any, sample: Any, save: Any,
                  previous: Any) -> DeepAnswers:  # fmt: skip
        arguments.update(kept=previous, sample=sample)
        return DeepAnswers(
            nodes={host.node: NodeAnswers(node=host.node, steps=cast(Any, HUNG)) for host in hosts}
        )

    monkeypatch.setattr(deep_runner, "run_tests", run_tests)
    monkeypatch.setattr(verify_deep, "say", lambda _: None)
    return arguments


def added(folder: Path, resume: bool = False) -> VerificationResult:
    observed = evidence()
    findings = tuple(proof_chain.evaluate(observed, parse_settings({})))
    before = VerificationResult(observed, findings, proof_chain.required_links(observed, SETTINGS))
    cluster = cast(Cluster, None)
    return verify_deep.with_deep_tests(cluster, before, SETTINGS, NODES, folder, resume)


def test_its_findings_are_part_of_the_chain_and_its_answers_of_the_report(
    runner_arguments: dict[str, Any], tmp_path: Path
) -> None:
    result = added(tmp_path)
    failed = [
        (finding.link, finding.node) for finding in result.findings if finding.status == "fail"
    ]
    assert failed == [("diag", "gpu1"), ("diag", "gpu2")]
    links = [
        finding.link
        for finding in result.findings
        if finding.node == "gpu1" and finding.link in DEEP_LINKS
    ]
    assert set(links) == set(DEEP_LINKS)
    assert set(deep_files.read(tmp_path).nodes) == {"gpu1", "gpu2"}
    assert "deep" in result.evidence.durations
    assert runner_arguments["kept"] == DeepAnswers()


def test_a_resumed_one_takes_what_the_newest_report_has(
    runner_arguments: dict[str, Any], tmp_path: Path
) -> None:
    old, new_folder = tmp_path / "20261121T100000Z-lab", tmp_path / "20261122T100000Z-lab"
    old.mkdir()
    new_folder.mkdir()
    added(new_folder, resume=True)
    assert runner_arguments["kept"] == DeepAnswers()
    saved_answers = NodeAnswers(node="gpu1", steps=cast(Any, HUNG))
    deep_files.save(saved_answers, old)
    added(new_folder, resume=True)
    assert runner_arguments["kept"] == DeepAnswers(nodes={"gpu1": saved_answers})
    (old / deep_files.FOLDER / "gpu1.json").write_text("{")
    added(new_folder, resume=True)
    assert runner_arguments["kept"] == DeepAnswers(), "what cannot be read is tested again"


def test_a_host_that_does_not_answer_under_load_says_nothing(
    runner_arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Inventory:
        @staticmethod
        def get_host(name: str) -> str:
            return name

    def run(host: str, command: str) -> str:
        if host == "10.0.0.1":
            raise PyinfraError("timed out")
        return f"{host}: {command}"

    monkeypatch.setattr(verify_deep, "inventory", Inventory)
    monkeypatch.setattr(verify_deep, "run", run)
    added(tmp_path)
    assert runner_arguments["sample"]("gpu1") == ""
    assert runner_arguments["sample"]("gpu2") == f"10.0.0.2: {gpu_state_at_work.COMMAND}"
