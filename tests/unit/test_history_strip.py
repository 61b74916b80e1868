"""The strips of a report's page: what was known of each GPU, on one axis of time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuboot.verify.history.files import note, strips_of
from gpuboot.verify.report import Report
from gpuboot.verify.report.html import html
from gpuboot.verify.report.strips import Stretch, Strip, Strips
from tests.unit.evidence import evidence, uuid
from tests.unit.reports import broken, report

FIRST, SECOND = uuid("gpu1", 0), uuid("gpu1", 1)


def on(day: int, base: Report | None = None) -> Report:
    return replace(base or report(evidence()), started=f"2026-11-{day:02}T14:00:00Z")


def of(strips: Strips, gpu: str) -> Strip:
    return next(strip for strip in strips.gpus if strip.uuid == gpu)


def states(strip: Strip) -> list[tuple[str, float, float]]:
    return [(stretch.status, stretch.left, stretch.width) for stretch in strip.stretches]


def test_one_moment_has_no_history(tmp_path: Path) -> None:
    note(on(1), tmp_path)
    assert strips_of(on(1), tmp_path) == Strips()
    assert "<h2>History" not in html(on(1), strips_of(on(1), tmp_path))


def test_a_gpu_that_stays_well_is_one_stretch(tmp_path: Path) -> None:
    note(on(1), tmp_path)
    strips = strips_of(on(11), tmp_path)
    assert of(strips, FIRST).stretches == (
        Stretch(
            "pass",
            0,
            100,
            "2026-11-01 to 2026-11-11: proven; no later verification found a fault",
        ),
    )
    assert not any(strip.eventful for strip in strips.gpus)
    assert strips.ticks == (
        (0, "2026-11-01"),
        (25, "2026-11-04"),
        (50, "2026-11-06"),
        (75, "2026-11-09"),
        (100, "2026-11-11"),
    )


def test_a_fault_lasts_until_the_next_proof_and_stands_first(tmp_path: Path) -> None:
    for observed in (on(1), on(5, broken()), on(6, broken()), on(9)):
        note(observed, tmp_path)
    strips = strips_of(on(11), tmp_path)
    faulty = of(strips, SECOND)
    assert states(faulty) == [("pass", 0, 40), ("fail", 40, 40), ("pass", 80, 20)]
    assert faulty.faults == 1
    assert "workload" in faulty.stretches[1].text
    assert strips.gpus[0].eventful
    assert not strips.gpus[-1].eventful


def test_what_came_later_is_not_on_the_page_of_an_earlier_report(tmp_path: Path) -> None:
    for observed in (on(1), on(5, broken())):
        note(observed, tmp_path)
    assert states(of(strips_of(on(3), tmp_path), SECOND)) == [("pass", 0, 100)]


def test_a_gpu_that_was_away_is_not_proven_until_it_is(tmp_path: Path) -> None:
    full_report = on(1)
    note(full_report, tmp_path)
    note(on(3, replace(full_report, gpus=full_report.gpus[1:])), tmp_path)
    rows = tuple(
        replace(row, links={**row.links, "workload": "not_covered"}) for row in full_report.gpus
    )
    note(on(5, replace(full_report, gpus=rows)), tmp_path)
    strip = of(strips_of(on(11), tmp_path), full_report.gpus[0].uuid)
    assert states(strip) == [("pass", 0, 20), ("gone", 20, 20), ("not_covered", 40, 60)]
    assert [mark.text for mark in strip.marks] == ["2026-11-05: back"]


def test_a_move_is_a_mark_and_a_gpu_of_another_cluster_is_not_shown(tmp_path: Path) -> None:
    full_report = on(1)
    note(full_report, tmp_path)
    moved = replace(full_report.gpus[0], node="gpu2", pci="0000:99:00.0")
    note(on(6, replace(full_report, gpus=(moved, *full_report.gpus[1:]))), tmp_path)
    strip = of(strips_of(on(11), tmp_path), moved.uuid)
    assert [mark.left for mark in strip.marks] == [50]
    assert states(strip) == [("pass", 0, 50), ("pass", 50, 50)]
    assert strip.node == "gpu2"
    assert strips_of(replace(on(11), cluster="other"), tmp_path) == Strips()


def test_the_page_shows_them_by_dates_within_hours_too(tmp_path: Path) -> None:
    for observed in (on(1), on(2, broken())):
        note(observed, tmp_path)
    page = html(on(2, broken()), strips_of(on(2, broken()), tmp_path))
    history_html = page.split("<h2>History</h2>")[1].split("<h2>")[0]
    assert (
        'class="s-pass" style="left:0.0%;width:100.0%" title="2026-11-01 to 2026-11-02'
        in history_html
    )
    assert "11-01 14:00" in history_html
