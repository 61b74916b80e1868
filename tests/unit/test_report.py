"""The report's four forms, from the same findings."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from markupsafe import escape
from rich.console import Console

from gpuboot.verify.checks import host_checks
from gpuboot.verify.findings import GPU_LINKS
from gpuboot.verify.report import build, load, new_folder, write
from gpuboot.verify.report.html import html
from gpuboot.verify.report.junit import junit
from gpuboot.verify.report.report_model import ReportError
from gpuboot.verify.report.report_terminal import show
from tests.unit import mig_evidence
from tests.unit.evidence import evidence, uuid
from tests.unit.reports import UUIDS, broken, report, text


def test_totals_and_verdict() -> None:
    no_totals = {"proven": 0, "answering": 0, "failed": 0, "not_covered": 0}
    assert report(evidence()).totals == no_totals | {"gpus": 6, "proven": 6}
    failed_report = broken()
    assert (failed_report.verdict, failed_report.exit) == ("failed", 1)
    assert failed_report.totals == no_totals | {"gpus": 6, "proven": 1, "failed": 5}


def test_a_node_s_failure_shows_on_all_its_gpus() -> None:
    rows = {row.uuid: row for row in broken().gpus}
    assert {rows[uuid("gpu2", i)].links["exporter"] for i in range(4)} == {"fail"}
    assert rows[uuid("gpu1", 0)].links["exporter"] == "pass"


@pytest.mark.parametrize("width", [60, 71, 80])
def test_no_line_parts_a_link_from_its_number_or_mark(width: int) -> None:
    full_report = report(evidence())
    wide, narrow = text(full_report).splitlines(), text(full_report, width=width).splitlines()
    below = [line for line in wide if line.startswith(("1 pci", "cluster "))]
    assert len(below) == 2
    for parts, gap in zip(below, ("  ", "   "), strict=True):
        for part in parts.removeprefix("cluster  ").split(gap):
            assert any(re.search(rf"(^|  ){part}(  |$)", line) for line in narrow), part
    assert max(len(line) for line in narrow if line[:3] in ("1 p", "clu")) <= width


@pytest.mark.parametrize("make", [lambda: report(evidence()), broken])
def test_json_round_trip(tmp_path: Path, make: object) -> None:
    original = make()  # type: ignore[operator]
    write(original, tmp_path)
    assert load(tmp_path / "verify.json") == original
    data = json.loads((tmp_path / "verify.json").read_text())
    assert (data["verdict"], data["exit"]) == (original.verdict, original.exit)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such report"),
        ("{", "not a report"),
        ("{}", "not a report"),
        ('{"schema": 9}', "schema 9"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "verify.json").write_text(content)
    with pytest.raises(ReportError, match=message):
        load(tmp_path / "verify.json")


def test_junit_counts_and_parses_whatever_a_log_holds() -> None:
    failed_report = broken()
    root = ET.fromstring(junit(failed_report))
    cases = root.findall(".//testcase")
    assert len(cases) == len(failed_report.findings) == int(root.attrib["tests"])
    assert (
        len(root.findall(".//failure"))
        == len(failed_report.with_status("fail"))
        == int(root.attrib["failures"])
    )
    assert len(root.findall(".//skipped")) == len(failed_report.with_status("not_covered"))
    assert [suite.attrib["name"] for suite in root] == ["gpu1", "gpu2", "cluster"]
    failure = next(f for f in root.iter("failure") if "Test FAILED" in f.attrib["message"])
    assert failure.text is not None
    assert failure.text.startswith("remedy: ")


def test_html_has_every_gpu_every_remedy_and_no_other_file() -> None:
    failed_report = broken()
    page = html(failed_report)
    assert all(page.count(item) >= 1 for item in UUIDS)
    assert "&lt;b&gt;Test FAILED&lt;/b&gt;" in page
    assert "<b>Test FAILED" not in page
    for item in failed_report.findings:
        assert str(escape(item.remedy.split("`")[0])) in page
    assert "<code>nvidia-smi -q -d ECC,ROW_REMAPPER</code>" in page
    assert "SIMULATED by the gpuboot lab" in page
    assert "595.91.07" in page
    assert not re.search(r"(src|href)=|https?://|@import|url\(", page)
    assert page.index("What is wrong") < page.index("<h2>GPUs")


def test_html_of_a_proof() -> None:
    page = html(report(evidence()))
    assert "Every GPU is proven" in page
    assert "What is wrong" not in page


def test_terminal_has_a_row_per_gpu_and_says_what_to_do(tmp_path: Path) -> None:
    output = text(broken(), tmp_path)
    assert all(item in output for item in UUIDS)
    row = next(line for line in output.splitlines() if UUIDS[1] in line)
    assert (row.count("✓"), row.count("✗")) == (9, 1)
    assert "FAILED  1 of 6 GPUs proven, 5 failed, 0 not covered" in output
    assert output.count("no dcgm-exporter pod runs on this node") == 1
    assert "remedy: look at the dcgm-exporter pod" in output
    assert "SIMULATED" in output
    assert str(tmp_path) in output


def test_terminal_of_a_proof() -> None:
    output = text(report(evidence()))
    assert "PROVEN  6 of 6 GPUs proven" in output
    assert "remedy" not in output
    real = replace(report(evidence()), simulated=())
    assert "SIMULATED" not in text(real)


def test_folders_have_names_of_their_own_and_latest_leads_to_the_newest(tmp_path: Path) -> None:
    now = datetime(2026, 11, 21, 14, 0, 5, tzinfo=UTC)
    first, second = (new_folder(tmp_path / "reports", "lab", now) for _ in range(2))
    assert first.name == "20261121T140005Z-lab"
    assert second.name == "20261121T140005Z-lab-2"
    assert (tmp_path / "reports" / "latest").resolve() == second.resolve()


def test_a_gpu_with_mig_is_one_row_with_its_instances(tmp_path: Path) -> None:
    """Totals go on counting cards; each MIG device has its own chain above the driver."""
    observed = mig_evidence.evidence(mig_evidence.machine())
    findings = mig_evidence.evaluate(observed)
    bad = observed.hosts[0].devices[1].uuid
    findings = [
        replace(item, status="fail", remedy="-")
        if (item.link, item.gpu_uuid) == ("workload", bad)
        else item
        for item in findings
    ]
    links = {observed.hosts[0].node: tuple(host_checks.without(GPU_LINKS, observed.hosts[0]))}
    built_report = build("lab", "2026-11-21T14:00:00Z", 1.0, observed.hosts, findings, links)
    cut, undivided = built_report.gpus
    assert (
        built_report.totals["gpus"],
        built_report.totals["failed"],
        built_report.totals["proven"],
    ) == (2, 1, 1)
    assert undivided.instances == ()
    assert [item.status for item in cut.instances] == ["pass", "fail", "pass", "pass", "pass"]
    assert cut.links["workload"] == "fail"
    assert set(cut.instances[0].links) == set(cut.links)
    text = StringIO()
    show(built_report, console=Console(file=text, width=140))
    assert bad in text.getvalue()
    assert bad in html(built_report)
    write(built_report, tmp_path)
    loaded = load(tmp_path / "verify.json")
    assert loaded.gpus == built_report.gpus
    row = json.loads((tmp_path / "verify.json").read_text())["gpus"][0]
    assert row["instances"][1]["status"] == "fail"
    assert row["instances"][1]["gi"] == 8
