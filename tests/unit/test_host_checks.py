"""Checks that are one file: each on what its command prints, and a new one from its file alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.verify.fact import HostChecks
from gpuboot.hosts.fact_output import answer
from gpuboot.verify.checks import host_checks
from gpuboot.verify.checks.one_file import TIMED_OUT, CommandOutput, HostCheck
from gpuboot.verify.checks.one_file_checks import HOST_CHECKS
from gpuboot.verify.devices import Gpu, Host
from tests.documents import ROOT
from tests.unit.one_file_checks import KINDS, cases, file_names, parameters, run_check_script

CASES = ROOT / "tests/host_checks"
NOW = 1763870000.0  # when cases are asked


def host(models: dict[str, str], outputs: dict[str, CommandOutput] | None, count: int = 2) -> Host:
    gpus = tuple(
        Gpu(
            pci=f"0000:0{i}:00.0",
            uuid=f"GPU-{i}",
            index=i,
            name=models.get(f"GPU-{i}", "NVIDIA H100 80GB HBM3"),
        )
        for i in range(count)
    )
    return Host(node="gpu1", expected_gpus=count, gpus=gpus, outputs=outputs)


@pytest.mark.parametrize(("check", "case"), parameters(HOST_CHECKS, CASES))
def test_a_check_on_what_its_command_prints(check: HostCheck, case: dict[str, Any]) -> None:
    output = CommandOutput(case["printed"], case.get("exit", 0), requested=NOW, answered=NOW + 1)
    findings = [
        item
        for item in host_checks.evaluate(
            host(case.get("models", {}), {check.link.name: output}, case.get("gpus", 2))
        )
        if item.link == check.link.name
    ]
    assert {item.gpu_uuid or "": item.status for item in findings} == case["expected"]
    for item in findings:
        assert item.status == "pass" or item.remedy
        assert item.status != "fail" or item.remedy.startswith(check.link.remedy)
    assert case.get("says", "") in " ".join(item.detail for item in findings)


@pytest.mark.parametrize("check", HOST_CHECKS, ids=lambda check: check.link.name)
def test_a_check_has_cases_of_every_kind(check: HostCheck) -> None:
    assert {case["kind"] for case in cases(CASES, check)} == KINDS


def test_cases_are_of_checks() -> None:
    assert file_names(CASES) == {check.link.name for check in HOST_CHECKS}


def test_a_host_that_was_not_asked_says_nothing_and_one_that_is_silent_is_unknown() -> None:
    links = [check.link.name for check in HOST_CHECKS]
    assert host_checks.evaluate(host({}, None)) == []
    assert host_checks.without(["pci", *links], host({}, None)) == ["pci"]
    silent = host_checks.evaluate(host({}, {}))
    assert {(item.link, item.status) for item in silent} == {(name, "unknown") for name in links}
    assert all(item.remedy for item in silent)


def run(script: str, path: Path) -> list[str]:
    """What the fact's command prints on a machine with these programs first."""
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", "-c", script], env=environment, text=True, capture_output=True, timeout=60,
        check=True,
    )  # fmt: skip
    return answer(result.stdout.splitlines()).lines


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def test_the_fact_brings_what_the_commands_print_with_their_exit_status(tmp_path: Path) -> None:
    program(tmp_path / "nvidia-smi", "printf 'GPU 0: x\\n\\t Link 0: 1 GB/s\\nend'; exit 3\n")
    fact = HostChecks()
    lines = run(fact.command(), tmp_path)
    assert fact.value(lines)["nvlink"] == CommandOutput("GPU 0: x\n\t Link 0: 1 GB/s\nend", 3)
    with pytest.raises(Exception, match="cannot be read"):
        fact.value(lines[:-1])


def test_a_command_that_hangs_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "nvidia-smi", "echo begun; exec sleep 30\n")
    monkeypatch.setattr(
        "deploys.parts.verify.fact._CHECK_COMMAND",
        __import__("deploys.parts.verify.fact", fromlist=["_CHECK_COMMAND"])._CHECK_COMMAND.replace(
            "{seconds}", "1"
        ),
    )
    output = HostChecks().value(run(HostChecks().command(), tmp_path))["nvlink"]
    assert output == CommandOutput("begun\n", TIMED_OUT)


NEW = """
from gpuboot.verify.checks.one_file import HostCheck
from gpuboot.verify.checks.one_file import Link
from gpuboot.verify.checks.one_file import CheckVerdict

def _evaluate(gpus, printed):
    low = [line.split()[0] for line in printed.text.splitlines() if int(line.split()[1]) < 50]
    return [
        CheckVerdict(
            status="fail", detail="its fan stands still", remedy="have the fan mended", uuid=uuid
        )
        if uuid in low else CheckVerdict(status="pass", detail="its fan turns", uuid=uuid)
        for uuid in gpus
    ]

CHECK = HostCheck(
    link=Link(
        name="fans", passes="its fan turns", facts="fan-speeds of the host",
        fails="a fan stands still", remedy="have the fan", subject="card", docker=True,
    ),
    behind="driver",
    command="fan-speeds",
    evaluate=_evaluate,
)
"""
SCRIPT = """
import json, sys
from dataclasses import replace
from gpuboot.verify.checks import of_hosts
of_hosts.__path__.append(sys.argv[1])
from deploys.parts.verify.fact import HostChecks
from gpuboot.config.settings import parse_settings
from gpuboot.docs.checks_page import checks_markdown
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.checks.one_file import CommandOutput
from gpuboot.verify.report import build
from tests.unit.evidence import evidence, host, uuid
from tests.unit.reports import text
from gpuboot.verify.report.html import html
settings = parse_settings({})
said = "".join(f"{uuid('gpu1', i)} {speed}\\n" for i, speed in enumerate((90, 0)))
gpu1 = replace(host("gpu1", 2), outputs={"fans": CommandOutput(said), "nvlink": CommandOutput()})
seen = evidence(hosts=(gpu1,))
found = proof_chain.evaluate(seen, settings)
links = proof_chain.required_links(seen, parse_settings({}))
report = build("lab", "2026-11-21T14:00:00Z", 3.1, seen.hosts, found, links)
print(json.dumps({
    "findings": [(f.link, f.gpu_uuid, f.status) for f in found if f.link == "fans"],
    "links": list(report.gpus[0].links),
    "text": text(report), "html": html(report), "docs": checks_markdown(),
    "command": HostChecks().command(), "verdict": report.verdict,
}))
"""


def test_a_new_check_is_one_file(tmp_path: Path) -> None:
    message = run_check_script(tmp_path, "fans", NEW, SCRIPT)
    assert [status for _, _, status in message["findings"]] == ["pass", "fail"]
    assert message["links"][:4] == ["pci", "driver", "fans", "nvidia-smi"]
    assert message["verdict"] == "failed"
    assert "fans: its fan stands still" in message["text"]
    assert "have the fan mended" in message["text"]
    assert "its fan stands still" in message["html"]
    assert "| `fans` | its fan turns | fan-speeds of the host |" in message["docs"]
    assert "fan-speeds" in message["command"]
