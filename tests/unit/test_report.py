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

from gpuboot.config.settings import parse_settings as settings
from gpuboot.rules.catalogue import all_alerts
from gpuboot.verify.checks import chain
from gpuboot.verify.evidence import Evidence, GpuPod
from gpuboot.verify.findings import LINKS, NOT_REACHED, Finding, Status
from gpuboot.verify.firing_alerts import firing_alerts
from gpuboot.verify.report import Report, build, load, new_folder, write
from gpuboot.verify.report.cases import Location, Step, cases
from gpuboot.verify.report.html import RUNBOOKS, html
from gpuboot.verify.report.junit import junit
from gpuboot.verify.report.model import GpuRow, InstanceRow, ReportError
from gpuboot.verify.report.run_failures import Failure, masked, with_run_failures
from gpuboot.verify.report.terminal import show
from gpuboot.verify.runner import simulated
from tests.unit import test_checks_mig
from tests.unit.evidence import SIZES, answer, evidence, metrics, trial, uuid

FAILED: Status = "fail"
PASSED: Status = "pass"
UUIDS = [uuid(name, index) for name, count in SIZES.items() for index in range(count)]


def report(seen: Evidence) -> Report:
    found = chain.evaluate(seen, settings({"exporter": {"interval_ms": 2000}}))
    return build(
        "lab",
        "2026-11-21T14:00:00Z",
        21.4,
        seen.hosts,
        found,
        simulated=simulated(seen.hosts),
        versions={"driver": "595.91.07", "kubelet": "v1.36.3", "nothing": ""},
        durations={"workload": 6.1, "metrics": 7.25},
    )


def broken() -> Report:
    """gpu1 has a GPU that computes wrong, with a log to beware of; gpu2 no exporter, one holder."""
    sound = evidence()
    bad = trial("gpu1", 1, passed=False, error="log: <b>Test FAILED</b> \x1b[31m & more")
    rest = tuple(t for t in sound.workload_results if t.uuids != (uuid("gpu1", 1),))[:-1]
    return report(
        replace(
            sound,
            workload_results=(*rest, bad),
            gpu_pods=(GpuPod(namespace="ml", name="train-0", node="gpu2", gpus=1),),
            metrics=metrics(exporters=(answer("gpu1", 2),)),
        )
    )


def text(found: Report, folder: Path | None = None) -> str:
    out = StringIO()
    show(found, folder, Console(file=out, width=200, color_system=None))
    return out.getvalue()


def test_totals_and_verdict() -> None:
    assert report(evidence()).totals == {"gpus": 6, "proven": 6, "failed": 0, "not_covered": 0}
    found = broken()
    assert (found.verdict, found.exit) == ("failed", 1)
    assert found.totals == {"gpus": 6, "proven": 1, "failed": 5, "not_covered": 0}


def test_a_node_s_failure_shows_on_all_its_gpus() -> None:
    rows = {row.uuid: row for row in broken().gpus}
    assert {rows[uuid("gpu2", i)].links["exporter"] for i in range(4)} == {"fail"}
    assert rows[uuid("gpu1", 0)].links["exporter"] == "pass"


@pytest.mark.parametrize("make", [lambda: report(evidence()), broken])
def test_json_round_trip(tmp_path: Path, make: object) -> None:
    found = make()  # type: ignore[operator]
    write(found, tmp_path)
    assert load(tmp_path / "verify.json") == found
    data = json.loads((tmp_path / "verify.json").read_text())
    assert (data["verdict"], data["exit"]) == (found.verdict, found.exit)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such report"),
        ("{", "not a report"),
        ("{}", "not a report"),
        ('{"schema": 9}', "schema 9"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "verify.json").write_text(content)
    with pytest.raises(ReportError, match=said):
        load(tmp_path / "verify.json")


def test_junit_counts_and_parses_whatever_a_log_holds() -> None:
    found = broken()
    root = ET.fromstring(junit(found))
    cases = root.findall(".//testcase")
    assert len(cases) == len(found.findings) == int(root.attrib["tests"])
    assert (
        len(root.findall(".//failure"))
        == len(found.with_status("fail"))
        == int(root.attrib["failures"])
    )
    assert len(root.findall(".//skipped")) == len(found.with_status("not_covered"))
    assert [suite.attrib["name"] for suite in root] == ["gpu1", "gpu2", "cluster"]
    failure = next(f for f in root.iter("failure") if "Test FAILED" in f.attrib["message"])
    assert failure.text is not None
    assert failure.text.startswith("remedy: ")


def test_html_has_every_gpu_every_remedy_and_no_other_file() -> None:
    found = broken()
    page = html(found)
    assert all(page.count(item) >= 1 for item in UUIDS)
    assert "&lt;b&gt;Test FAILED&lt;/b&gt;" in page
    assert "<b>Test FAILED" not in page
    for item in found.findings:
        assert str(escape(item.remedy.split("`")[0])) in page
    assert "<code>kubectl -n gpuboot-verify get events</code>" in page
    assert "SIMULATED by the gpuboot lab" in page
    assert "595.91.07" in page
    assert not re.search(r"(src|href)=|https?://|@import|url\(", page)
    assert page.index("What is wrong") < page.index("<h2>GPUs")


def test_html_of_a_proof() -> None:
    page = html(report(evidence()))
    assert "Every GPU is proven" in page
    assert "What is wrong" not in page


def test_terminal_has_a_row_per_gpu_and_says_what_to_do(tmp_path: Path) -> None:
    shown = text(broken(), tmp_path)
    assert all(item in shown for item in UUIDS)
    row = next(line for line in shown.splitlines() if UUIDS[1] in line)
    assert (row.count("✓"), row.count("✗")) == (8, 1)
    assert "FAILED  1 of 6 GPUs proven, 5 failed, 0 not covered" in shown
    assert shown.count("no dcgm-exporter pod runs on this node") == 1
    assert "remedy: look at the dcgm-exporter pod" in shown
    assert "SIMULATED" in shown
    assert str(tmp_path) in shown


def test_what_follows_from_a_failed_run_names_what_failed_in_it() -> None:
    """To run the deployment again is no remedy for what the deployment has just failed at."""
    failure = Failure("Drivers | Install the driver", "\nE: no such package\n    remedy: x")
    found = [
        Finding(
            check="c",
            link="driver",
            node="gpu1",
            gpu_uuid=None,
            status="fail",
            detail="none is loaded",
            remedy="run deploys/site.py",
        ),
        Finding(
            check="c",
            link="driver",
            node="gpu2",
            gpu_uuid=None,
            status="fail",
            detail="none is loaded",
            remedy="run deploys/site.py",
        ),
        Finding(
            check="c", link="pci", node="gpu1", gpu_uuid="GPU-1", status="pass", detail="on the bus"
        ),
    ]
    first, other, passed = with_run_failures(found, {"gpu1": failure})
    assert first.remedy == (
        "first mend what failed there in this run: Drivers | Install the driver: "
        "E: no such package; then run deploys/site.py"
    )
    assert (other, passed) == (found[1], found[2])
    assert Failure("Connect", "x" * 500).line.endswith("…")
    assert Failure("Connect", "").line == "Connect"


def test_a_lost_gpu_is_one_case_with_its_lowest_broken_link_first() -> None:
    """Eight links of one GPU, one of them broken: one card, and what was not reached folded."""
    said: dict[str, tuple[Status, str, str]] = {
        "nvidia-smi": ("fail", "is lost", "reboot"),
        "allocatable": ("fail", "3 of 4", "see"),
    }
    found = [
        Finding(
            check="c",
            link=link,
            node="gpu2",
            gpu_uuid="GPU-3",
            status=status,
            detail=detail,
            remedy=remedy,
        )
        for link in ("allocatable", *said)
        for status, detail, remedy in [said[link]]
    ]
    found += [
        Finding(
            check="c",
            link=link,
            node="gpu2",
            gpu_uuid="GPU-3",
            status="not_covered",
            detail=NOT_REACHED,
            remedy="mend that one first",
        )
        for link in ("runtime", "workload", "exporter", "prometheus", "attribution")
    ]
    (case,) = cases(found)
    assert case.cause == Step(("nvidia-smi",), "fail", ("is lost",), "reboot")
    assert [step.links[0] for step in case.others] == ["runtime", "allocatable"]
    assert len(case.other_links) == 6
    assert case.locations == (Location("gpu2", ("GPU-3",)),)


def test_what_is_alike_is_told_once() -> None:
    dead = [
        Finding(
            check="c",
            link="pci",
            node=node,
            gpu_uuid=None,
            status="unknown",
            detail="no answer",
            remedy="SSH",
        )
        for node in "ab"
    ]
    follows = [
        Finding(
            check="c",
            link=link,
            node=node,
            gpu_uuid=uuid,
            status="not_covered",
            detail=NOT_REACHED,
            remedy="mend that one first",
        )
        for link in ("driver", "workload")
        for node, uuid in (("a", "GPU-1"), ("a", "GPU-2"), ("b", "GPU-3"))
    ]
    (case,) = cases([*follows, *dead])
    assert case.locations == (Location("a"), Location("b"))
    down = [
        Finding(
            check="c",
            link="targets",
            node=n,
            gpu_uuid=None,
            status="fail",
            detail=f"{n} is down",
            remedy="see its pod",
        )
        for n in "ab"
    ]
    other = Finding(
        check="c",
        link="rules",
        node="",
        gpu_uuid=None,
        status="fail",
        detail="none",
        remedy="run again",
    )
    first, second = cases([*down, other])
    assert first.cause.details == ("a is down", "b is down")
    assert (second.cause.links, second.locations) == (("rules",), (Location(""),))


def test_a_mig_device_s_trouble_is_told_with_its_gpu() -> None:
    """What was not reached for the GPU below it makes no case of its own."""
    devices = tuple(
        InstanceRow(uuid=uuid, profile="1g.10gb", gi=number, ci=0, links={"workload": status})
        for number, (uuid, status) in enumerate((("MIG-1", FAILED), ("MIG-2", PASSED)))
    )
    links = {"nvidia-smi": PASSED, "workload": FAILED}
    row = GpuRow(
        node="a",
        uuid="GPU-1",
        pci="0000:10:00.0",
        name="A100",
        memory_mib=40960,
        links=links,
        instances=devices,
    )
    found = (
        Finding(
            check="c",
            link="nvidia-smi",
            node="a",
            gpu_uuid="GPU-1",
            status="pass",
            detail="answers",
        ),
        Finding(
            check="c",
            link="workload",
            node="a",
            gpu_uuid="MIG-1",
            status="fail",
            detail="log: Test FAILED",
            remedy="see its log",
        ),
        Finding(
            check="c",
            link="workload",
            node="a",
            gpu_uuid="MIG-2",
            status="pass",
            detail="it passed",
        ),
    )
    plain = replace(report(evidence()), gpus=(row,), findings=found)
    table = html(plain).split("<h2>GPUs")[1].split("</table>")[0]
    assert re.findall(r'title="workload: ([^"]*)"', table) == [
        "log: Test FAILED; it passed",
        "log: Test FAILED",
        "it passed",
    ]
    lost = [
        Finding(
            check="c",
            link="nvidia-smi",
            node="a",
            gpu_uuid="GPU-1",
            status="fail",
            detail="requires reset",
            remedy="reset it",
        ),
        Finding(
            check="c",
            link="workload",
            node="a",
            gpu_uuid="MIG-1",
            status="not_covered",
            detail=NOT_REACHED,
            remedy="mend that one first",
        ),
    ]
    (case,) = cases(lost, plain.parents)
    assert case.locations == (Location("a", ("GPU-1",)),)


def test_failures_come_first() -> None:
    order: list[Status] = ["not_covered", "unknown", "fail"]
    found = [
        Finding(
            check="c", link="pci", node=status, gpu_uuid=None, status=status, detail="d", remedy="r"
        )
        for status in order
    ]
    assert [case.status for case in cases(found)] == order[::-1]


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
    found = alerted()
    assert [item.name for item in found.alerts or ()] == [
        "KubeletDown", "GPURowRemapFailure", "GPUNodeNotReady",
    ]  # fmt: skip
    assert [item.action for item in found.firing("gpu1", UUIDS[0])] == ["replace"]
    assert found.firing("gpu1") == found.firing("gpu1", UUIDS[1]) == []
    assert [item.name for item in found.firing("gpu2")] == ["GPUNodeNotReady"]
    assert [item.name for item in found.firing("")] == ["KubeletDown"]
    assert found.verdict == "proven"


def test_a_proven_gpu_that_is_to_be_replaced_shows_it_everywhere(tmp_path: Path) -> None:
    found = alerted()
    write(found, tmp_path)
    data = json.loads((tmp_path / "verify.json").read_text())
    assert load(tmp_path / "verify.json") == found
    rows = {row["uuid"]: row["alerts"] for row in data["gpus"]}
    assert (rows[UUIDS[0]], rows[UUIDS[1]]) == (["GPURowRemapFailure"], [])
    assert {item["action"] for item in data["alerts"]} == {"replace", ""}
    suites = {suite.attrib["name"]: suite for suite in ET.fromstring(junit(found))}
    assert "GPURowRemapFailure fires (critical, gpu_action replace)" in (
        suites["gpu1"].findtext("system-out") or ""
    )
    assert "KubeletDown" in (suites["cluster"].findtext("system-out") or "")
    shown = text(found)
    assert "! gpu1  GPURowRemapFailure fires (critical, replace)" in shown
    assert UUIDS[0] in shown.split("fires (critical, replace)")[1]
    page = html(found)
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
    said = "Failed: http://user:s3cr3t@proxy:3128/ and https://a.example/b:c@d"
    assert masked(said) == "Failed: http://***@proxy:3128/ and https://a.example/b:c@d"


def test_alerts_that_nobody_could_tell_are_unknown(tmp_path: Path) -> None:
    found = report(evidence())
    assert found.alerts is None
    assert json.loads(json.dumps(found.to_json()))["alerts"] is None
    assert "alerts: no answer" in html(found)
    assert "0</b><span>alerts fire" in html(replace(found, alerts=()))


def test_details_are_no_run_on_sentence() -> None:
    found = report(evidence())
    more = Finding(
        check="c",
        link="targets",
        node="",
        gpu_uuid=None,
        status="pass",
        detail="kube-state-metrics is up",
    )
    page = html(replace(found, findings=(*found.findings, more)))
    assert "<div>3 targets up</div><div>kube-state-metrics is up</div>" in page


def test_terminal_of_a_proof() -> None:
    shown = text(report(evidence()))
    assert "PROVEN  6 of 6 GPUs proven" in shown
    assert "remedy" not in shown
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
    what = test_checks_mig.evidence(test_checks_mig.machine())
    found = test_checks_mig.judge(what)
    bad = what.hosts[0].devices[1].uuid
    found = [
        replace(item, status="fail", remedy="-")
        if (item.link, item.gpu_uuid) == ("workload", bad)
        else item
        for item in found
    ]
    made = build("lab", "2026-11-21T14:00:00Z", 1.0, what.hosts, found)
    cut, whole = made.gpus
    assert (made.totals["gpus"], made.totals["failed"], made.totals["proven"]) == (2, 1, 1)
    assert whole.instances == ()
    assert [item.status for item in cut.instances] == ["pass", "fail", "pass", "pass", "pass"]
    assert cut.links["workload"] == "fail"
    assert set(cut.instances[0].links) == set(cut.links)
    text = StringIO()
    show(made, console=Console(file=text, width=140))
    assert bad in text.getvalue()
    assert bad in html(made)
    write(made, tmp_path)
    again = load(tmp_path / "verify.json")
    assert again.gpus == made.gpus
    row = json.loads((tmp_path / "verify.json").read_text())["gpus"][0]
    assert row["instances"][1]["status"] == "fail"
    assert row["instances"][1]["gi"] == 8
