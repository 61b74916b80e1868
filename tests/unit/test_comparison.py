"""What changed since an earlier verification."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuboot.verify.report.comparison import differences, previous
from gpuboot.verify.report.writer import write
from tests.unit.evidence import evidence, uuid
from tests.unit.reports import broken, report


def test_the_same_report_has_no_difference() -> None:
    assert differences(report(evidence()), report(evidence())) == []


def test_verdict_findings_and_versions() -> None:
    now = replace(broken(), versions={"driver": "595.91.08", "kubelet": "v1.36.3"})
    lines = differences(report(evidence()), now)
    assert lines[0] == "verdict: proven -> failed"
    assert "driver: 595.91.07 -> 595.91.08" in lines
    assert any(uuid("gpu1", 1) in line and "pass -> fail" in line for line in lines)
    assert any("fail -> pass" in line for line in differences(now, report(evidence())))


def test_gpus_that_came_went_and_moved() -> None:
    before = report(evidence())
    first, second, *remaining = before.gpus
    new_gpu = replace(second, uuid="GPU-new")
    now = replace(before, gpus=(replace(first, node="gpu9"), new_gpu, *remaining))
    lines = differences(before, now)
    assert f"{second.uuid} of gpu1 ({second.pci}) is not there any more" in lines
    assert f"GPU-new is new, on gpu1 ({second.pci})" in lines
    assert any("moved from gpu1" in line and "to gpu9" in line for line in lines)


def test_the_one_before_is_of_the_same_cluster(tmp_path: Path) -> None:
    for name, cluster in (("1-lab", "lab"), ("2-other", "other"), ("3-lab", "lab")):
        folder = tmp_path / f"2026112{name}"
        folder.mkdir()
        write(replace(report(evidence()), cluster=cluster), folder)
    (tmp_path / "20261122-broken").mkdir()
    earlier = previous(tmp_path / "20261123-lab")
    assert earlier is not None
    assert earlier[0].name == "20261121-lab"
    assert previous(tmp_path / "20261121-lab") is None
