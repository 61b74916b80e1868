"""Which fields the exporters collect, compared with the list that they were to start with.

Both charts mount the list by subPath, which the kubelet never refreshes, and put no checksum of it
into the pod: gpu-operator v26.7.0 controllers/object_controls.go:1902, dcgm-exporter's chart 4.8.4
templates/daemonset.yaml and templates/metrics-configmap.yaml.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import lock
from gpuboot.monitoring.charts.exporter import exporter_values, rollout_s
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.telemetry import collected
from gpuboot.telemetry.collectors import COLLECTORS_ANNOTATION, digest, requested_fields
from gpuboot.telemetry.requested_fields import RequestedFields
from gpuboot.verify.checks import field_checks
from gpuboot.verify.evidence import ExporterScrape
from gpuboot.verify.findings import Finding, verdict
from gpuboot.verify.history.events import changes
from tests.unit.evidence import evidence, gpu, host, metrics, of, scrape, uuid
from tests.unit.fake_cluster import FakeCluster
from tests.unit.reports import report
from tests.unit.test_runner import clock, run

__all__ = ["clock"]

TEMPERATURE, MEMORY_CLOCK, FAN = (
    f"DCGM_FI_DEV_{name}" for name in ("GPU_TEMP", "MEM_CLOCK", "FAN_SPEED")
)
REQUESTED = RequestedFields(frozenset({TEMPERATURE, MEMORY_CLOCK, FAN}), "new")
OPTED = {"counters": ["DCGM_FI_DEV_FB_TOTAL"]}
OTHER_CONFIG = {"dcgmExporter": {"config": {"name": "site", "create": False}}}


def scrape_of(node: str, names: set[str], stamp: str | None) -> ExporterScrape:
    count = {"gpu1": 2, "gpu2": 4}[node]
    return scrape(node, count, names=frozenset(names), fields_digest=stamp)


def evaluate(
    *answers: ExporterScrape, expected: RequestedFields | None = REQUESTED
) -> list[Finding]:
    observed = evidence(metrics=metrics(exporters=answers), requested_fields=expected)
    return [item for host in observed.hosts for item in field_checks.evaluate(host, observed)]


def test_what_a_gpu_does_not_have_is_no_failure_where_the_list_is_current() -> None:
    findings = evaluate(
        scrape_of("gpu1", {TEMPERATURE, MEMORY_CLOCK}, "new"),
        scrape_of("gpu2", {TEMPERATURE}, "new"),
    )
    assert {item.status for item in findings} == {"pass"}
    assert findings[0].detail == f"2 of 3 fields have values; this node's GPUs have no {FAN}"


def test_an_exporter_that_started_with_an_earlier_list_fails_alone() -> None:
    findings = evaluate(
        scrape_of("gpu1", {TEMPERATURE}, "old"), scrape_of("gpu2", set(REQUESTED.names), "new")
    )
    failed = of(findings, "fail", "exporter")
    assert [item.gpu_uuid for item in failed] == [uuid("gpu1", 0), uuid("gpu1", 1)]
    assert "another list" in failed[0].detail
    assert MEMORY_CLOCK in failed[0].detail
    assert "deploys/site.py" in failed[0].remedy


@pytest.mark.parametrize(("stamp", "proven"), [("old", 4), ("new", 6)])
def test_no_gpu_is_proven_by_an_exporter_with_another_list(stamp: str, proven: int) -> None:
    """The verdict was `failed`, and the rows, totals and history said that every GPU is proven."""
    answers = (
        scrape_of("gpu1", {TEMPERATURE}, stamp),
        scrape_of("gpu2", set(REQUESTED.names), "new"),
    )
    observed = evidence(metrics=metrics(exporters=answers), requested_fields=REQUESTED)
    result = report(observed)
    assert result.totals["proven"] == proven
    assert result.verdict == ("failed" if proven < 6 else "proven")
    kinds = [event.kind for events in changes(result, {}).values() for event in events]
    assert (kinds.count("proven"), kinds.count("failed")) == (proven, 6 - proven)


def test_the_list_says_nothing_of_a_gpu_that_the_exporter_lacks() -> None:
    first = host("gpu1", 2, gpus=(gpu("gpu1", 0), gpu("gpu1", 1, is_lost=True)))
    observed = evidence(
        hosts=(first,),
        metrics=metrics(exporters=(scrape_of("gpu1", {TEMPERATURE, MEMORY_CLOCK}, "new"),)),
        requested_fields=REQUESTED,
    )
    (_, row) = report(observed).gpus
    assert row.links["exporter"] == "not_covered"


def test_a_field_that_nobody_asked_for_tells_of_another_list() -> None:
    """The ConfigMap was edited by hand, and the pod started since."""
    extra_fields = {*REQUESTED.names, "DCGM_FI_DEV_SM_CLOCK"}
    failed = of(
        evaluate(scrape_of("gpu1", extra_fields, "new"), scrape_of("gpu2", extra_fields, "new")),
        "fail",
    )
    assert {item.node for item in failed} == {"gpu1", "gpu2"}
    assert "DCGM_FI_DEV_SM_CLOCK, which is not in its list" in failed[0].detail


def test_without_a_note_a_field_counts_where_any_gpu_has_it() -> None:
    findings = evaluate(
        scrape_of("gpu1", {TEMPERATURE}, None), scrape_of("gpu2", {TEMPERATURE, MEMORY_CLOCK}, None)
    )
    assert of(findings, "fail") == []
    findings = evaluate(
        scrape_of("gpu1", {TEMPERATURE}, None), scrape_of("gpu2", {TEMPERATURE}, None)
    )
    assert {item.status for item in findings} == {"fail"}
    assert all(item.detail.endswith(f"does not collect {MEMORY_CLOCK}") for item in findings)


@pytest.mark.parametrize(
    "answers",
    [
        (),
        (scrape_of("gpu1", set(), "old"), scrape_of("gpu1", set(), "old")),
        (scrape("gpu1", 0, error="502"),),
    ],
)
def test_an_exporter_without_one_answer_has_a_finding_elsewhere(
    answers: tuple[ExporterScrape, ...],
) -> None:
    assert evaluate(*answers) == []


def test_a_list_of_the_sites_own_is_not_judged() -> None:
    assert evaluate(scrape_of("gpu1", {TEMPERATURE}, "old"), expected=None) == []
    assert requested_fields(parse_settings({"gpu_operator": {"values": OTHER_CONFIG}})) is None
    assert (
        requested_fields(parse_settings({"exporter": {"arguments": ["--collectors=/etc/own.csv"]}}))
        is None
    )


def test_a_list_that_cannot_be_read_is_unknown() -> None:
    expected = requested_fields(
        parse_settings({"exporter": {"collectors_file": "/nowhere/own.csv"}})
    )
    findings = evaluate(scrape_of("gpu1", {TEMPERATURE}, None), expected=expected)
    assert "No such file or directory: '/nowhere/own.csv'" in of(findings, "unknown")[0].detail


def test_every_field_that_was_asked_for_is_compared() -> None:
    settings = parse_settings({"exporter": OPTED})
    requested = requested_fields(settings)
    assert requested is not None
    assert requested.names == collected(settings)
    assert len(requested.names) > 50


@pytest.mark.parametrize("kind", ["operator", "chart"])
def test_pods_start_anew_when_the_list_changes_and_only_then(kind: str) -> None:
    def pods(**exporter: Any) -> Any:
        settings = parse_settings({"exporter": {"kind": kind, **exporter}})
        if kind == "chart":
            values = exporter_values(settings, lock(settings))
            return values["podAnnotations"], values["customMetrics"]
        values = operator_values(settings, lock(settings))["dcgmExporter"]
        return values["annotations"], values["config"]["data"]

    notes, text = pods()
    assert notes == {COLLECTORS_ANNOTATION: digest(text)}
    assert pods(scrape_interval="30s")[0] == notes
    assert pods(**OPTED)[0] != notes


def test_verification_fails_where_a_changed_list_was_not_taken_up() -> None:
    cluster = FakeCluster()
    assert verdict(run(cluster).findings) == "proven"
    cluster = FakeCluster(annotations={COLLECTORS_ANNOTATION: "of the release before"})
    failed = of(list(run(cluster).findings), "fail")
    assert {(item.link, item.node) for item in failed} == {
        ("exporter", "gpu1"),
        ("exporter", "gpu2"),
    }


def test_a_large_cluster_gets_the_time_that_one_node_after_the_other_takes() -> None:
    assert rollout_s(2) == 900
    assert rollout_s(64) > 64 * 45
