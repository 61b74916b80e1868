"""What is wrong, by the GPU that has it: one cause, what follows from it, and in which order."""

from __future__ import annotations

import re
from dataclasses import replace

from gpuboot.verify.findings import NOT_REACHED, Finding, Status
from gpuboot.verify.report.cases import Location, Step, cases
from gpuboot.verify.report.html import html
from gpuboot.verify.report.report_model import GpuRow, InstanceRow, Report
from gpuboot.verify.report.run_failures import Failure, with_run_failures
from tests.unit.evidence import evidence
from tests.unit.reports import FAILED, PASSED, report


def finding(
    link: str, node: str, status: Status, detail: str, remedy: str = "", gpu_uuid: str | None = None
) -> Finding:
    return Finding(
        check="c",
        link=link,
        node=node,
        gpu_uuid=gpu_uuid,
        status=status,
        detail=detail,
        remedy=remedy,
    )


def test_what_follows_from_a_failed_run_names_what_failed_in_it() -> None:
    """To run the deployment again is no remedy for what the deployment has just failed at."""
    failure = Failure("Drivers | Install the driver", "\nE: no such package\n    remedy: x")
    findings = [
        finding(
            link="driver",
            node="gpu1",
            status="fail",
            detail="none is loaded",
            remedy="run deploys/site.py",
        ),
        finding(
            link="driver",
            node="gpu2",
            status="fail",
            detail="none is loaded",
            remedy="run deploys/site.py",
        ),
        finding(link="pci", node="gpu1", gpu_uuid="GPU-1", status="pass", detail="on the bus"),
    ]
    first, second_finding, passed = with_run_failures(findings, {"gpu1": failure})
    assert first.remedy == (
        "first fix what failed on this host in this run: Drivers | Install the driver: "
        "E: no such package; then run deploys/site.py"
    )
    assert (second_finding, passed) == (findings[1], findings[2])
    assert Failure("Connect", "x" * 500).line.endswith("…")
    assert Failure("Connect", "").line == "Connect"


def test_a_lost_gpu_is_one_case_with_its_lowest_broken_link_first() -> None:
    """Eight links of one GPU, one of them broken: one card, and what was not reached folded."""
    outcomes: dict[str, tuple[Status, str, str]] = {
        "nvidia-smi": ("fail", "is lost", "reboot"),
        "allocatable": ("fail", "3 of 4", "see"),
    }
    findings = [
        finding(
            link=link, node="gpu2", gpu_uuid="GPU-3", status=status, detail=detail, remedy=remedy
        )
        for link in ("allocatable", *outcomes)
        for status, detail, remedy in [outcomes[link]]
    ]
    findings += [
        finding(
            link=link,
            node="gpu2",
            gpu_uuid="GPU-3",
            status="not_covered",
            detail=NOT_REACHED,
            remedy="fix that one first",
        )
        for link in ("runtime", "workload", "exporter", "prometheus", "attribution")
    ]
    (case,) = cases(findings)
    assert case.cause == Step(("nvidia-smi",), "fail", ("is lost",), "reboot")
    assert [step.links[0] for step in case.later_steps] == ["runtime", "allocatable"]
    assert len(case.other_links) == 6
    assert case.locations == (Location("gpu2", ("GPU-3",)),)


def test_what_is_alike_is_told_once() -> None:
    dead = [
        finding(link="pci", node=node, status="unknown", detail="no answer", remedy="SSH")
        for node in "ab"
    ]
    follows = [
        finding(
            link=link,
            node=node,
            gpu_uuid=uuid,
            status="not_covered",
            detail=NOT_REACHED,
            remedy="fix that one first",
        )
        for link in ("driver", "workload")
        for node, uuid in (("a", "GPU-1"), ("a", "GPU-2"), ("b", "GPU-3"))
    ]
    (case,) = cases([*follows, *dead])
    assert case.locations == (Location("a"), Location("b"))
    down = [
        finding(link="targets", node=n, status="fail", detail=f"{n} is down", remedy="see its pod")
        for n in "ab"
    ]
    rule_finding = finding(link="rules", node="", status="fail", detail="none", remedy="run again")
    first, second = cases([*down, rule_finding])
    assert first.cause.details == ("a is down", "b is down")
    assert (second.cause.links, second.locations) == (("rules",), (Location(""),))


def mig_report(findings: tuple[Finding, ...]) -> Report:
    """A report of one GPU that is cut into two MIG devices."""
    devices = tuple(
        InstanceRow(
            uuid=uuid,
            profile="1g.10gb",
            gi=number,
            ci=0,
            demanded=("workload",),
            links={"workload": status},
        )
        for number, (uuid, status) in enumerate((("MIG-1", FAILED), ("MIG-2", PASSED)))
    )
    row = GpuRow(
        node="a",
        uuid="GPU-1",
        pci="0000:10:00.0",
        name="A100",
        memory_mib=40960,
        demanded=("nvidia-smi", "workload"),
        links={"nvidia-smi": PASSED, "workload": FAILED},
        instances=devices,
    )
    return replace(report(evidence()), gpus=(row,), findings=findings)


def test_a_mig_device_s_trouble_is_told_with_its_gpu() -> None:
    built_report = mig_report(
        (
            finding("nvidia-smi", "a", "pass", "answers", gpu_uuid="GPU-1"),
            finding("workload", "a", "fail", "log: Test FAILED", "see its log", gpu_uuid="MIG-1"),
            finding("workload", "a", "pass", "it passed", gpu_uuid="MIG-2"),
        )
    )
    table = html(built_report).split("<h2>GPUs")[1].split("</table>")[0]
    assert re.findall(r'title="workload: ([^"]*)"', table) == [
        "log: Test FAILED; it passed",
        "log: Test FAILED",
        "it passed",
    ]


def test_what_was_not_reached_for_the_gpu_below_makes_no_case_of_its_own() -> None:
    lost_findings = [
        finding("nvidia-smi", "a", "fail", "requires reset", "reset it", gpu_uuid="GPU-1"),
        finding("workload", "a", "not_covered", NOT_REACHED, "fix that first", gpu_uuid="MIG-1"),
    ]
    (case,) = cases(lost_findings, mig_report(()).parents)
    assert case.locations == (Location("a", ("GPU-1",)),)


def test_failures_come_first() -> None:
    order: list[Status] = ["not_covered", "unknown", "fail"]
    findings = [
        finding(link="pci", node=status, status=status, detail="d", remedy="r") for status in order
    ]
    assert [case.status for case in cases(findings)] == order[::-1]
