"""The link `health`: what the exporter and critical alerts tell of faults, read from its page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.telemetry.fields import BY_NAME
from gpuboot.verify.checks import chain, health
from gpuboot.verify.collector import parse_scrape
from gpuboot.verify.evidence import ExporterScrape
from gpuboot.verify.findings import Finding, verdict
from gpuboot.verify.firing_alerts import FiringAlert
from tests.unit.evidence import evidence, metrics, of, scrape, uuid

SETTINGS = parse_settings({})
GPU, OTHER = uuid("gpu1", 0), uuid("gpu1", 1)
BLANK = 9223372036854775794


def page(*lines: str) -> ExporterScrape:
    """gpu1's exporter, with these values beside those that a proof needs."""
    told = parse_scrape("gpu1", "exporter", "\n".join(line.format(GPU) for line in lines))
    return replace(scrape("gpu1", 2), health=told.health, names=told.names)


def judged(answer: ExporterScrape, *alerts: FiringAlert) -> list[Finding]:
    seen = evidence(metrics=metrics(exporters=(answer, scrape("gpu2", 4)), alerts=alerts))
    return [item for item in chain.evaluate(seen, SETTINGS) if item.node == "gpu1"]


def alert(**other: str) -> FiringAlert:
    plain = {
        "name": "GPUXidFatal",
        "severity": "critical",
        "action": "reset",
        "node": "gpu1",
        "gpu_uuid": GPU,
        "part": "",
        "since": "",
        "summary": "",
        "description": "",
        "runbook": "",
    }
    return FiringAlert(**{**plain, **other})


WELL = (
    'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{UUID="{}"}} 0',
    'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{UUID="{}"}} 1',
    'DCGM_EXP_GPU_HEALTH_STATUS{{UUID="{}",health_watch="MEM",health_error_code="DCGM_FR_OK"}} 0',
    f'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{{UUID="{OTHER}"}}}} 0',
)
FAULTS = {
    'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{UUID="{}"}} 2': ("2 uncorrected memory errors", "--gpu-reset"),
    'DCGM_FI_DEV_ROW_REMAP_FAILURE{{UUID="{}"}} 1': ("could not be remapped", "replaced"),
    'DCGM_FI_DEV_ROW_REMAP_PENDING{{UUID="{}"}} 1': ("remap waits", "--gpu-reset"),
    'DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG{{UUID="{}"}} 1': ("unrepairable", "replaced"),
    'DCGM_FI_DEV_THRESHOLD_SRM{{UUID="{}"}} 1': ("SRAM", "replaced"),
    'DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION{{UUID="{}"}} 2': ("recovery action 2", "--gpu-reset"),
    'DCGM_EXP_GPU_HEALTH_STATUS{{UUID="{}",health_watch="ALL",'
    'health_error_code="DCGM_FR_UNCONTAINED_ERROR"}} 20': (
        "ALL (DCGM_FR_UNCONTAINED_ERROR) fails",
        "restart the exporter",
    ),
    # what a GPU of 91 °C says: slowed down by the hardware, for heat
    'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{UUID="{}"}} 72': ("for heat", "cooling"),
    'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{UUID="{}"}} 136': ("power brake", "power supplies"),
}
NEAR = (
    f'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{{UUID="{{}}"}}}} {BLANK}',
    'DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{UUID="{}"}} 4000',
    'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{UUID="{}"}} 36',  # the power limit, the temperature target
    'DCGM_EXP_GPU_HEALTH_STATUS{{UUID="{}",health_watch="MEM",health_error_code="X"}} 10',
    'DCGM_EXP_GPU_HEALTH_STATUS{{UUID="{}",health_watch="THERMAL",health_error_code="X"}} 20',
    'DCGM_EXP_XID_ERRORS_TOTAL{{UUID="{}",xid="31"}} 3',  # a program's own
)


def test_a_sound_gpu_passes() -> None:
    found = judged(page(*WELL))
    assert {item.status for item in of(found, "pass", "health")} == {"pass"}
    assert {item.gpu_uuid for item in of(found, "pass", "health")} == {GPU, OTHER}


@pytest.mark.parametrize("line", FAULTS)
def test_each_fault_fails_its_gpu_with_what_to_do(line: str) -> None:
    detail, remedy = FAULTS[line]
    found = judged(page(*WELL, line))
    (failed,) = [item for item in found if item.status == "fail"]
    assert (failed.link, failed.gpu_uuid) == ("health", GPU)
    assert detail in failed.detail
    assert remedy in failed.remedy
    assert verdict(found) == "failed"


@pytest.mark.parametrize("line", NEAR)
def test_what_is_no_fault_passes(line: str) -> None:
    assert not of(judged(page(*WELL, line)), "fail", "health")


def test_two_faults_are_both_said_and_the_graver_one_s_remedy() -> None:
    lines = list(FAULTS)
    (failed,) = of(judged(page(*WELL, lines[0], lines[1])), "fail", "health")
    assert "uncorrected" in failed.detail
    assert "remapped" in failed.detail
    assert "replaced" in failed.remedy


def test_a_critical_alert_that_asks_for_a_repair_counts_others_do_not() -> None:
    (failed,) = of(judged(page(*WELL), alert()), "fail", "health")
    assert "alert GPUXidFatal fires" in failed.detail
    for other in (
        alert(severity="warning"),
        alert(action="none"),
        alert(action="investigate"),
        alert(gpu_uuid="GPU-0"),
    ):
        assert not of(judged(page(*WELL), other), "fail", "health")
    (failed,) = of(judged(page(*WELL), alert(action="replace")), "fail", "health")
    assert "replaced" in failed.remedy


def test_a_gpu_without_values_is_unknown_and_an_exporter_without_them_has_no_such_link() -> None:
    (unknown,) = of(judged(page(*WELL[:3])), "unknown", "health")
    assert unknown.gpu_uuid == OTHER
    found = judged(replace(page(), names=frozenset({"DCGM_FI_DEV_GPU_TEMP"})))
    assert not [item for item in found if item.link == "health"]


def test_it_is_not_reached_where_the_exporter_does_not_answer() -> None:
    answer = replace(scrape("gpu1", 2), error="connection refused", names=frozenset(), health=())
    assert {item.gpu_uuid for item in of(judged(answer), "not_covered", "health")} == {GPU, OTHER}


def test_every_sign_is_collected_unless_a_site_has_its_own_list() -> None:
    assert BY_NAME.keys() >= health.METRICS


def test_a_wait_for_metrics_does_not_wait_for_a_repair() -> None:
    found = chain.metrics_findings(evidence(), SETTINGS)
    assert "health" not in {item.link for item in found}
