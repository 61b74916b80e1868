"""The link `health`: what the exporter and critical alerts tell of faults, read from its page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.fact_output import Fields
from gpuboot.telemetry.fields import BY_NAME
from gpuboot.verify import dcgm_results
from gpuboot.verify.checks import chain, health
from gpuboot.verify.collector import parse_scrape
from gpuboot.verify.dcgm_results import DcgmAnswer, DcgmVerdict
from gpuboot.verify.evidence import ExporterScrape
from gpuboot.verify.findings import Finding, verdict
from gpuboot.verify.firing_alerts import FiringAlert
from tests.unit.evidence import evidence, host, metrics, of, scrape, uuid

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
    'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{UUID="{}"}} 2': (
        "uncorrected memory errors since its last reset: 2",
        "--gpu-reset",
    ),
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


DBE = "DCGM_FR_VOLATILE_DBE_DETECTED"
ON_HOSTS = parse_settings({"dcgm": "host"})


def verdicts(
    what: str, *failing: str, level: int = 20, gpus: int = 2, code: str = DBE
) -> tuple[DcgmVerdict, ...]:
    """Of GPUs that are well, but for those: UUIDs."""
    found = [uuid("gpu1", number) for number in range(gpus)]
    return tuple(
        DcgmVerdict(
            what=what, uuid=one, level=level if one in failing else 0, text="a DBE", code=code
        )
        for one in found
    )


def answer_of(check: str, *failing: str, **other: Any) -> DcgmAnswer:
    what = {"health": "MEM", "diag": "software"}[check]
    plain = DcgmAnswer(check=check, age_s=200, verdicts=verdicts(what, *failing))
    return replace(plain, **other)


ASKED = (answer_of("health"), answer_of("diag"))


def judged_with(
    dcgm: tuple[DcgmAnswer, ...], answer: ExporterScrape | None = None, gpus: int = 2
) -> list[Finding]:
    """The link `health` of gpu1, whose host engine has said that."""
    seen = evidence(
        hosts=(host("gpu1", gpus, dcgm=dcgm), host("gpu2", 4)),
        metrics=metrics(exporters=(answer or page(*WELL), scrape("gpu2", 4))),
    )
    found = chain.evaluate(seen, ON_HOSTS)
    return [item for item in found if item.node == "gpu1" and item.link == "health"]


def test_a_gpu_that_the_host_engine_finds_well_passes() -> None:
    found = judged_with(ASKED)
    assert {item.status for item in found} == {"pass"}
    assert "DCGM's host engine finds nothing" in found[0].detail


@pytest.mark.parametrize(
    ("check", "detail", "remedy"),
    [
        ("health", "DCGM's host engine fails MEM: a DBE", "--gpu-reset"),
        ("diag", "DCGM's diagnosis fails software: a DBE", "jq . /var/lib/gpuboot/dcgm/diag.json"),
    ],
)
def test_what_the_host_engine_fails_fails_its_gpu(check: str, detail: str, remedy: str) -> None:
    other = answer_of("diag" if check == "health" else "health")
    found = judged_with((answer_of(check, GPU), other))
    assert {item.gpu_uuid: item.status for item in found} == {GPU: "fail", OTHER: "pass"}
    (failed,) = of(found, "fail", "health")
    assert detail in failed.detail
    assert remedy in failed.remedy


def test_it_fails_a_gpu_although_the_exporter_does_not_answer() -> None:
    down = ExporterScrape(node="gpu1", pod="exporter", error="refused")
    found = judged_with((answer_of("health", GPU), answer_of("diag")), down)
    assert [item.gpu_uuid for item in of(found, "fail", "health")] == [GPU]
    assert not of(found, "pass", "health")


def test_warnings_and_heat_fail_nothing() -> None:
    warning = answer_of("health", verdicts=verdicts("MEM", GPU, level=10))
    heat = answer_of("health", verdicts=verdicts("THERMAL", GPU))
    for one in (warning, heat):
        assert not of(judged_with((one, answer_of("diag"))), "fail", "health")


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
    found = judged_with(dcgm)
    assert {item.status for item in found} == {"unknown"}
    assert detail in found[0].detail
    assert "on the node:" in found[0].remedy


def test_without_the_setting_it_is_not_asked() -> None:
    seen = evidence(
        hosts=(host("gpu1", 2, dcgm=(answer_of("health", GPU),)), host("gpu2", 4)),
        metrics=metrics(exporters=(page(*WELL), scrape("gpu2", 4))),
    )
    found = [item for item in chain.evaluate(seen, SETTINGS) if item.node == "gpu1"]
    assert not of(found, "fail", "health")
    assert of(found, "pass", "health")


def test_it_is_enough_where_a_site_collects_no_value_of_health() -> None:
    few = page('DCGM_FI_DEV_GPU_TEMP{{UUID="{}"}} 40')
    assert {item.status for item in judged_with(ASKED, few)} == {"pass"}
    found = judged_with((answer_of("health", GPU), answer_of("diag")), few)
    assert [item.gpu_uuid for item in of(found, "fail", "health")] == [GPU]


ROWS = (
    f"dcgm_health\ttime\t1000\n"
    f"dcgm_health\t0\t{GPU}\t\tMEM\t20\ta DBE was detected\t{DBE}\n"
    f"dcgm_health\t\t\tSwitch 3\tNVSWITCH\t10\t\n"
    "dcgm_clock\t1060\nend\tok"
)


def test_rows_of_the_host_are_read() -> None:
    (found,) = dcgm_results.parse(Fields(ROWS.splitlines()))
    assert (found.check, found.age_s, found.is_stale) == ("health", 60, False)
    assert found.of(GPU) == (
        DcgmVerdict(what="MEM", uuid=GPU, level=20, text="a DBE was detected", code=DBE),
    )
    assert len(found.verdicts) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("time\t1000", "time\t"),
        ("\t20\t", "\tbad\t"),
        ("\tMEM", ""),
        ("dcgm_clock", "clock"),
        (f"\ta DBE was detected\t{DBE}", ""),
    ],
)
def test_rows_that_are_not_whole_are_no_answer(old: str, new: str) -> None:
    assert dcgm_results.parse(Fields(ROWS.replace(old, new, 1).splitlines())) == ()
