"""Alerts that fire, beside the proof of the GPU that they are about."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

from gpuboot.config.settings import parse_settings as settings
from gpuboot.monitoring.rules.catalogue import all_alerts
from gpuboot.verify.findings import LINKS, Finding
from gpuboot.verify.firing_alerts import firing_alerts
from gpuboot.verify.report import Report, load, write
from gpuboot.verify.report.html import RUNBOOKS, html
from gpuboot.verify.report.junit import junit
from gpuboot.verify.report.run_failures import masked
from tests.unit.evidence import evidence
from tests.unit.reports import UUIDS, broken, report, text

# as Prometheus 3.13 answers /api/v1/alerts (web/api/v1/api.go: Alert), with labels of our rules
ALERTS = [
    {
        "labels": {
            "alertname": "GPURowRemapFailure", "severity": "critical", "component": "gpu",
            "gpu_action": "replace", "node": "gpu1", "UUID": UUIDS[0], "gpu": "0",
        },
        "annotations": {
            "summary": "GPU 0 of gpu1 could not remap a row",
            "description": "NVIDIA's criterion for replacement.",
            "runbook_url": "https://git.example.com/docs/runbooks/GPURowRemapFailure.md",
        },
        "state": "firing", "activeAt": "2026-11-22T05:01:02.123456789Z", "value": "1e+00",
    },
    {
        "labels": {"alertname": "GPUNodeNotReady", "severity": "warning", "node": "gpu2"},
        "annotations": {"summary": "gpu2 is not ready"},
        "state": "firing", "activeAt": "2026-11-22T05:01:02Z", "value": "1e+00",
    },
    {
        "labels": {"alertname": "KubeletDown", "severity": "critical"},
        "annotations": {}, "state": "firing", "activeAt": "2026-11-22T05:01:02Z", "value": "1e+00",
    },
    {
        "labels": {"alertname": "GPUMemoryHot", "severity": "warning", "UUID": UUIDS[1]},
        "annotations": {}, "state": "pending", "activeAt": "2026-11-22T05:01:02Z", "value": "9e+01",
    },
    {
        "labels": {"alertname": "Watchdog", "severity": "none"},
        "annotations": {}, "state": "firing", "activeAt": "2026-11-22T05:01:02Z", "value": "1e+00",
    },
]  # fmt: skip


def alerted() -> Report:
    """Every GPU is proven, and one of them is to be replaced."""
    return replace(report(evidence()), alerts=firing_alerts(ALERTS))


def test_what_fires_is_known_by_gpu_node_and_cluster() -> None:
    alerted_report = alerted()
    assert [item.name for item in alerted_report.alerts or ()] == [
        "KubeletDown", "GPURowRemapFailure", "GPUNodeNotReady",
    ]  # fmt: skip
    assert [item.action for item in alerted_report.firing("gpu1", UUIDS[0])] == ["replace"]
    assert alerted_report.firing("gpu1") == alerted_report.firing("gpu1", UUIDS[1]) == []
    assert [item.name for item in alerted_report.firing("gpu2")] == ["GPUNodeNotReady"]
    assert [item.name for item in alerted_report.firing("")] == ["KubeletDown"]
    assert alerted_report.verdict == "proven"


def test_a_proven_gpu_that_is_to_be_replaced_shows_it_everywhere(tmp_path: Path) -> None:
    alerted_report = alerted()
    write(alerted_report, tmp_path)
    data = json.loads((tmp_path / "verify.json").read_text())
    assert load(tmp_path / "verify.json") == alerted_report
    rows = {row["uuid"]: row["alerts"] for row in data["gpus"]}
    assert (rows[UUIDS[0]], rows[UUIDS[1]]) == (["GPURowRemapFailure"], [])
    assert {item["action"] for item in data["alerts"]} == {"replace", ""}
    suites = {suite.attrib["name"]: suite for suite in ET.fromstring(junit(alerted_report))}
    assert "GPURowRemapFailure fires (critical, gpu_action replace)" in (
        suites["gpu1"].findtext("system-out") or ""
    )
    assert "KubeletDown" in (suites["cluster"].findtext("system-out") or "")
    output = text(alerted_report)
    assert "! gpu1  GPURowRemapFailure fires (critical, replace)" in output
    assert UUIDS[0] in output.split("fires (critical, replace)")[1]
    page = html(alerted_report)
    row = page.split("<h2>GPUs")[1].split(UUIDS[0])[1].split("</td>")[0]
    assert "GPURowRemapFailure → replace" in row
    assert 'href="https://git.example.com/docs/runbooks/GPURowRemapFailure.md"' in page
    assert "<details" in page.split("<h2>GPUs")[1].split(UUIDS[1])[0]  # without an alert: folded


def test_a_broken_link_leads_to_its_runbook() -> None:
    names = {alert.name for group in all_alerts(settings({})).values() for alert in group}
    assert set(RUNBOOKS.values()) <= names
    assert set(RUNBOOKS) <= set(LINKS)
    address = "https://git.example.com/docs/runbooks"
    page = html(replace(broken(), runbooks=address))
    assert f'<a href="{address}/GPUExporterDown.md">' in page
    assert "<code>docs/runbooks/GPUExporterDown.md</code>" in html(
        replace(broken(), runbooks="docs/runbooks")
    )
    assert "Runbook" not in html(report(evidence()))


def test_messages_keep_no_credentials() -> None:
    message = "Failed: http://user:s3cr3t@proxy:3128/ and https://a.example/b:c@d"
    assert masked(message) == "Failed: http://***@proxy:3128/ and https://a.example/b:c@d"


def test_alerts_that_nobody_could_tell_are_unknown(tmp_path: Path) -> None:
    base_report = report(evidence())
    assert base_report.alerts is None
    assert json.loads(json.dumps(base_report.to_json()))["alerts"] is None
    assert "alerts: no answer" in html(base_report)
    assert "0</b><span>alerts fire" in html(replace(base_report, alerts=()))


def test_details_are_no_run_on_sentence() -> None:
    base_report = report(evidence())
    extra_finding = Finding(
        check="c",
        link="targets",
        node="",
        gpu_uuid=None,
        status="pass",
        detail="kube-state-metrics is up",
    )
    page = html(replace(base_report, findings=(*base_report.findings, extra_finding)))
    assert "<div>3 targets up</div><div>kube-state-metrics is up</div>" in page
