"""The link `health` of GPUs that a host engine of DCGM watches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.dcgm_results import DcgmAnswer, DcgmVerdict
from gpuboot.verify.evidence import ExporterScrape
from gpuboot.verify.findings import Finding
from tests.unit.evidence import evidence, host, metrics, of, scrape, uuid
from tests.unit.test_checks_health import GPU, SECOND_GPU, SETTINGS, WELL, page

DBE = "DCGM_FR_VOLATILE_DBE_DETECTED"
ON_HOSTS = parse_settings({"dcgm": "host"})


def verdicts(
    component: str, *failing: str, level: int = 20, gpus: int = 2, code: str = DBE
) -> tuple[DcgmVerdict, ...]:
    """Of GPUs that are well, but for those: UUIDs."""
    uuids = [uuid("gpu1", number) for number in range(gpus)]
    return tuple(
        DcgmVerdict(
            subject=component,
            uuid=gpu_uuid,
            level=level if gpu_uuid in failing else 0,
            text="a DBE",
            code=code,
        )
        for gpu_uuid in uuids
    )


def answer_of(check: str, *failing: str, **fields: Any) -> DcgmAnswer:
    component = {"health": "MEM", "diag": "software"}[check]
    plain = DcgmAnswer(check=check, age_s=200, verdicts=verdicts(component, *failing))
    return replace(plain, **fields)


DCGM_ANSWERS = (answer_of("health"), answer_of("diag"))


def judged_with(
    dcgm: tuple[DcgmAnswer, ...], answer: ExporterScrape | None = None, gpus: int = 2
) -> list[Finding]:
    """The link `health` of gpu1, whose host engine has said that."""
    observed = evidence(
        hosts=(host("gpu1", gpus, dcgm=dcgm), host("gpu2", 4)),
        metrics=metrics(exporters=(answer or page(*WELL), scrape("gpu2", 4))),
    )
    findings = proof_chain.evaluate(observed, ON_HOSTS)
    return [item for item in findings if item.node == "gpu1" and item.link == "health"]


def test_a_gpu_that_the_host_engine_finds_well_passes() -> None:
    findings = judged_with(DCGM_ANSWERS)
    assert {item.status for item in findings} == {"pass"}
    assert "DCGM's host engine finds nothing" in findings[0].detail


@pytest.mark.parametrize(
    ("check", "detail", "remedy"),
    [
        ("health", "DCGM's host engine fails MEM: a DBE", "--gpu-reset"),
        ("diag", "DCGM's diagnosis fails software: a DBE", "jq . /var/lib/gpuboot/dcgm/diag.json"),
    ],
)
def test_what_the_host_engine_fails_fails_its_gpu(check: str, detail: str, remedy: str) -> None:
    passing_answer = answer_of("diag" if check == "health" else "health")
    findings = judged_with((answer_of(check, GPU), passing_answer))
    assert {item.gpu_uuid: item.status for item in findings} == {GPU: "fail", SECOND_GPU: "pass"}
    (failed,) = of(findings, "fail", "health")
    assert detail in failed.detail
    assert remedy in failed.remedy


def test_it_fails_a_gpu_although_the_exporter_does_not_answer() -> None:
    down = ExporterScrape(node="gpu1", pod="exporter", error="refused")
    findings = judged_with((answer_of("health", GPU), answer_of("diag")), down)
    assert [item.gpu_uuid for item in of(findings, "fail", "health")] == [GPU]
    assert not of(findings, "pass", "health")


def test_warnings_and_heat_fail_nothing() -> None:
    warning = answer_of("health", verdicts=verdicts("MEM", GPU, level=10))
    heat = answer_of("health", verdicts=verdicts("THERMAL", GPU))
    for answer in (warning, heat):
        assert not of(judged_with((answer, answer_of("diag"))), "fail", "health")


@pytest.mark.parametrize(
    ("dcgm", "detail"),
    [
        ((), "has not been asked (dcgmi health)"),
        ((answer_of("health"),), "has not been asked (dcgmi diag)"),
        ((answer_of("health", age_s=7200), answer_of("diag")), "answered 2.0 h ago (dcgmi health)"),
        ((answer_of("health"), answer_of("diag", age_s=40 * 3600)), "answered 40.0 h ago"),
        (
            (answer_of("health", age_s=-7200), answer_of("diag")),
            "of 2.0 h from now (dcgmi health): the node's clock was set back",
        ),
        # what it said two hours ago may have been repaired, or not
        ((answer_of("health", GPU, age_s=7200), answer_of("diag")), "answered 2.0 h ago"),
        ((answer_of("health", verdicts=verdicts("MEM", gpus=0)), answer_of("diag")),
         "does not know this GPU"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_unknown(dcgm: tuple[DcgmAnswer, ...], detail: str) -> None:
    findings = judged_with(dcgm)
    assert {item.status for item in findings} == {"unknown"}
    assert detail in findings[0].detail
    assert "on the node:" in findings[0].remedy


def test_without_the_setting_it_is_not_asked() -> None:
    observed = evidence(
        hosts=(host("gpu1", 2, dcgm=(answer_of("health", GPU),)), host("gpu2", 4)),
        metrics=metrics(exporters=(page(*WELL), scrape("gpu2", 4))),
    )
    findings = [item for item in proof_chain.evaluate(observed, SETTINGS) if item.node == "gpu1"]
    assert not of(findings, "fail", "health")
    assert of(findings, "pass", "health")


def test_it_is_enough_where_a_site_collects_no_value_of_health() -> None:
    page_text = page('DCGM_FI_DEV_GPU_TEMP{{UUID="{}"}} 40')
    assert {item.status for item in judged_with(DCGM_ANSWERS, page_text)} == {"pass"}
    findings = judged_with((answer_of("health", GPU), answer_of("diag")), page_text)
    assert [item.gpu_uuid for item in of(findings, "fail", "health")] == [GPU]
