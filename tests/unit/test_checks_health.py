"""The link `health`: what the exporter and critical alerts tell of faults, read from its page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.telemetry.fields import BY_NAME
from gpuboot.telemetry.requested_fields import RequestedFields
from gpuboot.verify.checks import health_checks, proof_chain
from gpuboot.verify.collector import parse_scrape
from gpuboot.verify.evidence import ExporterScrape
from gpuboot.verify.findings import Finding, verdict
from gpuboot.verify.firing_alerts import FiringAlert
from tests.unit.evidence import ERRORS, evidence, metrics, of, scrape, uuid
from tests.unit.reports import report

SETTINGS = parse_settings({})
GPU, SECOND_GPU = uuid("gpu1", 0), uuid("gpu1", 1)
BLANK_VALUE = 9223372036854775794


def page(*lines: str) -> ExporterScrape:
    """gpu1's exporter, with these values beside those that a proof needs."""
    parsed = parse_scrape("gpu1", "exporter", "\n".join(line.format(GPU) for line in lines))
    return replace(scrape("gpu1", 2), health=parsed.health, names=parsed.names)


def gpu1_findings(answer: ExporterScrape, *alerts: FiringAlert) -> list[Finding]:
    observed = evidence(metrics=metrics(exporters=(answer, scrape("gpu2", 4)), alerts=alerts))
    return [item for item in proof_chain.evaluate(observed, SETTINGS) if item.node == "gpu1"]


def alert(**labels: str) -> FiringAlert:
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
    return FiringAlert(**{**plain, **labels})


WELL = (
    'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{UUID="{}"}} 0',
    'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{UUID="{}"}} 1',
    'DCGM_EXP_GPU_HEALTH_STATUS{{UUID="{}",health_watch="MEM",health_error_code="DCGM_FR_OK"}} 0',
    f'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{{UUID="{SECOND_GPU}"}}}} 0',
)
FAULTS = {
    'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{UUID="{}"}} 2': (
        "uncorrected memory errors since its last reset: 2",
        "--gpu-reset",
    ),
    'DCGM_FI_DEV_ROW_REMAP_FAILURE{{UUID="{}"}} 1': ("could not be remapped", "replaced"),
    'DCGM_FI_DEV_ROW_REMAP_PENDING{{UUID="{}"}} 1': ("remap waits", "--gpu-reset"),
    'DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG{{UUID="{}"}} 1': ("unrepairable", "replaced"),
    'DCGM_FI_DEV_THRESHOLD_SRM{{UUID="{}"}} 1': ("SRAM", "replaced"),
    'DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION{{UUID="{}"}} 2': ("recovery action 2", "--gpu-reset"),
    'DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION{{UUID="{}"}} 7': ("recovery action 7", "--gpu-reset"),
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
    f'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{{UUID="{{}}"}}}} {BLANK_VALUE}',
    'DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{UUID="{}"}} 4000',
    'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{UUID="{}"}} 36',  # the power limit, the temperature target
    'DCGM_EXP_GPU_HEALTH_STATUS{{UUID="{}",health_watch="MEM",health_error_code="X"}} 10',
    'DCGM_EXP_GPU_HEALTH_STATUS{{UUID="{}",health_watch="THERMAL",health_error_code="X"}} 20',
    'DCGM_EXP_XID_ERRORS_TOTAL{{UUID="{}",xid="31"}} 3',  # a program's own
    'DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION{{UUID="{}"}} 5',  # recover the IMEX domain
)


def test_a_sound_gpu_passes() -> None:
    findings = gpu1_findings(page(*WELL))
    assert {item.status for item in of(findings, "pass", "health")} == {"pass"}
    assert {item.gpu_uuid for item in of(findings, "pass", "health")} == {GPU, SECOND_GPU}


@pytest.mark.parametrize("line", FAULTS)
def test_each_fault_fails_its_gpu_with_what_to_do(line: str) -> None:
    detail, remedy = FAULTS[line]
    findings = gpu1_findings(page(*WELL, line))
    (failed,) = [item for item in findings if item.status == "fail"]
    assert (failed.link, failed.gpu_uuid) == ("health", GPU)
    assert detail in failed.detail
    assert remedy in failed.remedy
    assert verdict(findings) == "failed"


@pytest.mark.parametrize("line", NEAR)
def test_what_is_no_fault_passes(line: str) -> None:
    assert not of(gpu1_findings(page(*WELL, line)), "fail", "health")


def test_two_faults_are_both_said_and_the_graver_one_s_remedy() -> None:
    lines = list(FAULTS)
    (failed,) = of(gpu1_findings(page(*WELL, lines[0], lines[1])), "fail", "health")
    assert "uncorrected" in failed.detail
    assert "remapped" in failed.detail
    assert "replaced" in failed.remedy


def test_a_critical_alert_that_asks_for_a_repair_counts_others_do_not() -> None:
    (failed,) = of(gpu1_findings(page(*WELL), alert()), "fail", "health")
    assert "alert GPUXidFatal fires" in failed.detail
    for page_text in (
        alert(severity="warning"),
        alert(action="none"),
        alert(action="investigate"),
        alert(gpu_uuid="GPU-0"),
    ):
        assert not of(gpu1_findings(page(*WELL), page_text), "fail", "health")
    (failed,) = of(gpu1_findings(page(*WELL), alert(action="replace")), "fail", "health")
    assert "replaced" in failed.remedy


def test_a_gpu_without_values_is_unknown_and_an_exporter_without_them_has_no_such_link() -> None:
    (unknown,) = of(gpu1_findings(page(*WELL[:3])), "unknown", "health")
    assert unknown.gpu_uuid == SECOND_GPU
    findings = gpu1_findings(replace(page(), names=frozenset({"DCGM_FI_DEV_GPU_TEMP"})))
    assert not [item for item in findings if item.link == "health"]


def test_an_exporter_that_should_have_such_values_and_has_none_is_unknown() -> None:
    """The link was left out, as if the site's own list had none, and the GPU was proven."""
    silent = replace(page(), names=frozenset({"DCGM_FI_DEV_GPU_TEMP"}), fields_digest="now")

    def of_health(*names: str) -> list[Finding]:
        requested = RequestedFields(frozenset({"DCGM_FI_DEV_GPU_TEMP", *names}), "now")
        observed = evidence(metrics=metrics(exporters=(silent,)), requested_fields=requested)
        return [f for f in report(observed).findings if (f.link, f.node) == ("health", "gpu1")]

    assert [item.status for item in of_health(ERRORS)] == ["unknown", "unknown"]
    assert of_health() == []


@pytest.mark.parametrize("subject", ["alerts", "grafana"])
def test_alerts_that_could_not_be_read_leave_it_unknown(subject: str) -> None:
    """A critical alert fails the link, so it is no pass where nobody knows which fire."""
    observed = evidence(metrics=metrics(errors={subject: "no answer within 20 s"}))
    findings = [f for f in proof_chain.evaluate(observed, SETTINGS) if f.link == "health"]
    expected = "unknown" if subject == "alerts" else "pass"
    assert {item.status for item in findings} == {expected}
    silent = evidence(metrics=metrics(errors={subject: "503", "prometheus": "503"}))
    findings = proof_chain.evaluate(silent, SETTINGS)
    assert not of(findings, "unknown", "health"), "the links of Prometheus tell of that"
    faulty = replace(scrape("gpu1", 2), health=page(next(iter(FAULTS))).health)
    errors = {subject: "no answer"}
    observed = evidence(metrics=metrics(exporters=(faulty,), errors=errors))
    assert of(proof_chain.evaluate(observed, SETTINGS), "fail", "health"), "a fault stays one"


def test_it_is_not_reached_where_the_exporter_does_not_answer() -> None:
    answer = replace(scrape("gpu1", 2), error="connection refused", names=frozenset(), health=())
    findings = of(gpu1_findings(answer), "not_covered", "health")
    assert {item.gpu_uuid for item in findings} == {GPU, SECOND_GPU}


def test_every_sign_is_collected_unless_a_site_has_its_own_list() -> None:
    assert BY_NAME.keys() >= health_checks.METRICS


def test_a_wait_for_metrics_does_not_wait_for_a_repair() -> None:
    findings = proof_chain.metrics_findings(evidence(), SETTINGS)
    assert "health" not in {item.link for item in findings}
