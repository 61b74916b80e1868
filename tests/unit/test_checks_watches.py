"""The link `health`, by DCGM's health watches: of GPUs that are well, and of others."""

from __future__ import annotations

import pytest

from gpuboot.verify.dcgm_results import DcgmVerdict
from tests.unit.evidence import of
from tests.unit.test_checks_health import GPU, WELL, gpu1_findings, page
from tests.unit.test_checks_host_engine import answer_of, judged_with, verdicts


def watch(name: str, code: str, level: int) -> str:
    """A line of the exporter. + code: without DCGM_FR_"""
    labels = f'health_watch="{name}",health_error_code="DCGM_FR_{code}"'
    return f'DCGM_EXP_GPU_HEALTH_STATUS{{{{UUID="{{}}",{labels}}}}} {level}'


@pytest.mark.parametrize(
    ("line", "evidence"),
    [
        (watch("NVLINK", "NVLINK_ERROR_CRITICAL", 20), "fails: counters since the last reset"),
        (watch("NVLINK", "IMEX_UNHEALTHY", 20), "no IMEX daemon runs"),
        (watch("POWER", "CLOCKS_EVENT_POWER", 10), "a card at its power limit is well"),
        (watch("MEM", "XID_ERROR", 10), "it comes from an XID"),
        (watch("INFOROM", "CORRUPT_INFOROM", 10), "INFOROM (DCGM_FR_CORRUPT_INFOROM) warns"),
        (watch("PCIE", "OF_NEXT_YEAR", 10), "which gpuboot does not know"),
    ],
)
def test_what_dcgm_says_of_a_gpu_that_is_well_is_evidence(line: str, evidence: str) -> None:
    findings = gpu1_findings(page(*WELL, line))
    assert not of(findings, "fail", "health")
    (passed,) = [item for item in of(findings, "pass", "health") if item.gpu_uuid == GPU]
    assert "DCGM says: DCGM's health watch" in passed.detail
    assert evidence in passed.detail


def test_a_failure_that_gpuboot_does_not_know_is_unknown() -> None:
    (unknown,) = of(
        gpu1_findings(page(*WELL, watch("MEM", "OF_NEXT_YEAR", 20))), "unknown", "health"
    )
    assert unknown.gpu_uuid == GPU
    assert "MEM (DCGM_FR_OF_NEXT_YEAR) fails, which gpuboot does not know" in unknown.detail


def test_a_link_that_is_down_fails_an_sxm_board_alone() -> None:
    """The two GPUs of the evidence are H100 SXM."""
    down = watch("NVLINK", "NVLINK_DOWN", 20)
    (failed,) = of(gpu1_findings(page(*WELL, down)), "fail", "health")
    assert failed.gpu_uuid == GPU


def test_what_the_host_engine_says_of_a_gpu_that_is_well_is_evidence() -> None:
    code = "DCGM_FR_NVLINK_ERROR_CRITICAL"
    answer = answer_of("health", verdicts=verdicts("NVLINK", GPU, code=code))
    (passed,) = [
        item
        for item in of(judged_with((answer, answer_of("diag"))), "pass", "health")
        if item.gpu_uuid == GPU
    ]
    assert "DCGM's host engine fails NVLINK: a DBE: counters since the last reset" in passed.detail


def test_what_the_host_engine_says_of_the_machine_fails_no_gpu() -> None:
    """`None 0`: its IMEX daemon."""
    imex = DcgmVerdict(
        subject="NVLINK", uuid="", level=20, text="IMEX", code="DCGM_FR_IMEX_UNHEALTHY"
    )
    answer = answer_of("health", verdicts=(*verdicts("MEM"), imex))
    assert {item.status for item in judged_with((answer, answer_of("diag")))} == {"pass"}
