"""What is wrong, by the GPU that has it: one cause, what follows from it, and in which order."""

from __future__ import annotations

import re
from dataclasses import replace

from gpuboot.verify.findings import NOT_REACHED, Finding, Status
from gpuboot.verify.report.cases import Location, Step, cases
from gpuboot.verify.report.html import html
from gpuboot.verify.report.model import GpuRow, InstanceRow
from gpuboot.verify.report.run_failures import Failure, with_run_failures
from tests.unit.evidence import evidence
from tests.unit.reports import FAILED, PASSED, report


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
