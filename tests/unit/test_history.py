"""The history of GPUs: only what changed is kept, and only what was seen is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.verify.history.events import Event
from gpuboot.verify.history.history_files import HistoryError, note, read, read_last
from gpuboot.verify.report import Report
from tests.unit.evidence import evidence, host, uuid
from tests.unit.reports import broken, report

FIRST, SECOND = uuid("gpu1", 0), uuid("gpu1", 1)


def sound(day: int = 21) -> Report:
    return replace(report(evidence()), started=f"2026-11-{day}T14:00:00Z", cluster="lab")


def kinds(events: dict[str, list[Event]], gpu: str) -> list[str]:
    return [event.kind for event in events.get(gpu, [])]


def test_a_gpu_that_stays_well_has_its_first_lines_only(tmp_path: Path) -> None:
    first = note(sound(), tmp_path)
    assert kinds(first, FIRST) == ["first seen", "proven"]
    assert note(sound(22), tmp_path) == {}
    assert len((tmp_path / f"{FIRST}.jsonl").read_text().splitlines()) == 2
    last = read_last(tmp_path)["lab"]
    assert (last.at, last.verdict, last.gpus[FIRST]) == ("2026-11-22T14:00:00Z", "proven", "pass")


def test_a_fault_is_noted_once_with_its_links_and_its_end(tmp_path: Path) -> None:
    note(sound(), tmp_path)
    faulty = replace(broken(), started="2026-11-22T14:00:00Z")
    (event,) = note(faulty, tmp_path)[SECOND]
    assert event.kind == "failed"
    assert "workload" in event.detail
    assert SECOND not in note(replace(faulty, started="2026-11-23T14:00:00Z"), tmp_path)
    assert kinds(note(sound(24), tmp_path), SECOND) == ["proven"]
    assert read(tmp_path)[SECOND].count("failed") == 1


def test_what_could_not_be_tried_is_neither_a_fault_nor_a_proof(tmp_path: Path) -> None:
    busy = sound()
    rows = tuple(replace(row, links={**row.links, "workload": "not_covered"}) for row in busy.gpus)
    new_events = note(replace(busy, gpus=rows), tmp_path)
    assert kinds(new_events, FIRST) == ["first seen"]
    assert read(tmp_path)[FIRST].state is None


def test_a_gpu_that_moved_was_lost_and_came_back(tmp_path: Path) -> None:
    note(sound(), tmp_path)
    first_report = sound(22)
    moved = replace(first_report.gpus[0], node="gpu2", pci="0000:99:00.0")
    event, after = note(replace(first_report, gpus=(moved, *first_report.gpus[1:])), tmp_path)[
        FIRST
    ]
    assert (event.kind, event.node) == ("moved", "gpu2")
    assert after.kind == "proven", "a proof in another slot says nothing about this one"
    assert event.detail == f"from gpu1, {first_report.gpus[0].pci}"
    without = replace(sound(23), gpus=first_report.gpus[1:])
    assert kinds(note(without, tmp_path), FIRST) == ["gone"]
    assert note(replace(without, started="2026-11-24T14:00:00Z"), tmp_path) == {}
    back = replace(sound(25), gpus=(moved, *first_report.gpus[1:]))
    assert kinds(note(back, tmp_path), FIRST) == ["back", "proven"]


def test_a_replaced_gpu_is_named_by_its_slot(tmp_path: Path) -> None:
    note(sound(), tmp_path)
    first_report = sound(22)
    new_uuid = "GPU-00000000-0000-0000-0000-000000000001"
    new = replace(first_report.gpus[0], uuid=new_uuid)
    new_events = note(replace(first_report, gpus=(new, *first_report.gpus[1:])), tmp_path)
    assert new_events[new_uuid][0].detail == f"in the place of {FIRST}"
    assert kinds(new_events, FIRST) == ["gone"]


def test_gpus_of_a_node_that_nobody_read_are_not_called_gone(tmp_path: Path) -> None:
    note(sound(), tmp_path)
    first_report = sound(22)
    silent = replace(
        first_report,
        gpus=tuple(row for row in first_report.gpus if row.node != "gpu1"),
        findings=tuple(item for item in first_report.findings if item.node != "gpu1"),
    )
    assert note(silent, tmp_path) == {}


@pytest.mark.parametrize("other_slot", [False, True])
def test_a_gpu_that_has_told_no_uuid_may_be_the_one_of_its_slot(
    tmp_path: Path, other_slot: bool
) -> None:
    """Where the driver is not loaded no GPU has told one, and each was called gone."""
    note(sound(), tmp_path)
    first, *remaining = sound(22).gpus
    unnamed = replace(first, uuid="", pci="0000:99:00.0" if other_slot else first.pci)
    new_events = note(replace(sound(22), gpus=(unnamed, *remaining)), tmp_path)
    assert kinds(new_events, FIRST) == ["gone"] * other_slot


def test_gpus_of_a_host_that_cannot_be_read_stay_where_they_are(tmp_path: Path) -> None:
    note(sound(), tmp_path)
    unread = host("gpu1", 2, gpus=(), pci_addresses=(), error="timed out")
    result = replace(report(evidence(hosts=(unread, host("gpu2", 4)))), cluster="lab")
    assert len(result.gpus) == 6
    assert note(result, tmp_path) == {}


def test_gpus_of_another_cluster_are_left_alone(tmp_path: Path) -> None:
    note(replace(sound(), cluster="other"), tmp_path)
    rows = tuple(replace(row, uuid=f"{row.uuid[:-1]}f") for row in sound().gpus)
    new_events = note(replace(sound(22), gpus=rows), tmp_path)
    assert {event.kind for events in new_events.values() for event in events} == {
        "first seen",
        "proven",
    }


def test_the_lines_of_two_merged_branches_are_read_by_their_time(tmp_path: Path) -> None:
    note(sound(), tmp_path)
    path = tmp_path / f"{FIRST}.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(reversed([*lines, lines[0].replace("11-21", "11-20")])))
    assert read(tmp_path)[FIRST].events[0].at.startswith("2026-11-20")


@pytest.mark.parametrize("line", ["<<<<<<< HEAD", "{}", '{"event": "proven", "at": 1}', "[]"])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    (folder / f"{FIRST}.jsonl").write_text(f"{line}\n")
    with pytest.raises(HistoryError, match=f"{FIRST}.jsonl, line 1"):
        read(folder)
    result = CliRunner().invoke(app, ["report", "gpus", "--reports", str(tmp_path)])
    assert result.exit_code == 2
    assert "mend or remove that line" in result.output


def test_the_command_lists_all_and_tells_one(tmp_path: Path) -> None:
    note(sound(), tmp_path / "history")
    note(replace(broken(), started="2026-11-22T14:00:00Z"), tmp_path / "history")

    def run_history(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["report", "gpus", *arguments, "--reports", str(tmp_path)])
        assert result.exit_code == 0, result.output
        return result.output

    table = run_history().splitlines()
    assert table[0].split()[:3] == ["GPU", "model", "node"]
    assert len(table) == 1 + len(sound().gpus)
    row = next(line for line in table if line.startswith(SECOND))
    assert "lab/gpu1" in row
    assert row.split()[-5:] == ["failed", "2026-11-22", "2026-11-22", "1", "0"]
    assert "first seen" in run_history(SECOND)
    assert "first seen" not in run_history("gpu1")
    assert SECOND in run_history("--json")
    none = CliRunner().invoke(app, ["report", "gpus", "nothing", "--reports", str(tmp_path)])
    assert none.exit_code == 2
