"""Tables, targets and plots say what was measured, and what was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import report, tables
from bench.data import SIDES, Data, newest
from bench.matrix import Cell
from bench.statistics import Summary
from bench.targets import TARGETS
from lab.state import LabError

HOST = {
    "kind": "host", "at": "2026-11-22T15:00:00+00:00", "code": "now", "kernel": "6.18",
    "cpu": "a processor", "cores": 2, "memory_gib": 23.5, "python": "3.11.7", "revision": "abc1234",
    "versions": {"ansible-core": "2.19.14"},
}  # fmt: skip
BASE = {"gpuboot": 1.0, "ansible": 20.0, "mitogen": 9.0, "pyinfra": 4.0}


def samples(cell: str, runs: int = 5, code: str = "now", **factors: float) -> list[dict[str, Any]]:
    """Runs of every side in a cell; + factors: side -> how much more it takes than usual"""
    return [
        {
            "kind": "sample", "at": f"2026-11-22T15:0{number}:00+00:00", "code": code,
            "cell": cell, "side": side, "round": number, "changes": 0, "commands": 4,
            "seconds": BASE[side] * factors.get(side, 1) * (1 + number / 100),
            "cpu_s": BASE[side], "peak_mib": 60, "hosts_cpu_s": 1, "sent": 3000, "received": 1096,
        }
        for number in range(runs)
        for side in SIDES
    ]  # fmt: skip


def rows(text: str) -> dict[str, list[str]]:
    """Cells of a table's rows by their first."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {line[0]: line[1:] for line in lines[2:]}


def test_what_was_not_run_is_shown_as_not_run() -> None:
    table_rows = rows(tables.by_hosts(Data(samples("nothing/2/0.2ms"))))
    assert table_rows["1 host"] == ["not run"] * 7
    assert table_rows["2 hosts"] == [
        "1.02 (1.00–1.04)", "20.4 (20.0–20.8)", "9.18 (9.00–9.36)", "4.08 (4.00–4.16)",
        "20.0×", "9.00×", "4.00×",
    ]  # fmt: skip
    assert rows(tables.coverage(Data(samples("nothing/1/20ms"))))["nothing to do"] == [
        "1", "not run", "5", "not run", "not run"
    ]  # fmt: skip


def test_a_median_of_few_runs_says_so() -> None:
    assert tables.spread(Summary(2.0, 1.0, 3.0, 2)) == "2.00 (1.00–3.00, of 2)"
    assert tables.spread(Summary(2.0, 1.0, 3.0, 5)) == "2.00 (1.00–3.00)"


def test_one_run_is_called_one_where_more_are_not_meant() -> None:
    once, often = samples("fresh/48/0.2ms", 1), samples("nothing/48/0.2ms")
    table_rows = rows(tables.many(Data([*once, *often])))
    assert table_rows["fresh converge"][0] == "1.00 (one run)"
    assert table_rows["nothing to do"][0] == "1.02 (1.00–1.04)"
    assert table_rows["nothing to do"][3] == "0.08 (0.08–0.08)"
    assert rows(tables.many(Data([])))["fresh converge"] == ["not run"] * 4


def test_quantities_are_told_for_each_host() -> None:
    data = Data(samples("nothing/8/0.2ms"))
    table_rows = rows(tables.quantity(data, "bytes", "KiB", 1024, per_host=True))["8 hosts"]
    assert table_rows == ["0.50 (0.50–0.50)"] * 4


def test_a_target_is_met_missed_or_not_run() -> None:
    data = Data(samples("nothing/1/0.2ms"))
    table_rows = rows(tables.targets(data))
    assert table_rows["faster than Ansible, 1 host"] == ["≥ 25×", "20.0×", "**missed**"]
    assert table_rows["faster than Ansible with Mitogen, 1 host"] == ["≥ 8×", "9.00×", "met"]
    assert table_rows["CPU time of the controller, 1 host"] == ["≤ 1.5 s", "1.00 s", "met"]
    assert table_rows["faster than Ansible, 32 hosts"] == ["≥ 10×", "not run", "not run"]


def test_a_ratio_of_two_cells_is_one_of_gpuboot_itself() -> None:
    (target,) = (target for target in TARGETS if target.compared)
    records = [*samples("nothing/2/0.2ms"), *samples("nothing/32/0.2ms", gpuboot=1.7)]
    value = target.value(Data(records))
    assert value == pytest.approx(1.7)
    assert target.is_met(1.7)
    assert not target.is_met(2.1)


def test_only_the_code_that_was_measured_last_counts() -> None:
    records = [*samples("nothing/1/0.2ms", code="before"), *samples("fresh/1/0.2ms")]
    assert newest(records).cells() == [Cell("fresh", 1)]
    assert newest([]).cells() == []


def test_a_plot_has_a_gap_where_nothing_was_measured() -> None:
    plots_by_name = {plot["name"]: plot for plot in report.plots(Data(samples("nothing/2/0.2ms")))}
    assert plots_by_name["hosts"]["x"] == [1, 2, 8, 32]
    ansible = plots_by_name["hosts"]["series"][1]
    assert ansible["values"][0] is None
    assert ansible["values"][1] == pytest.approx([20.4, 20.0, 20.8])
    assert plots_by_name["bytes"]["series"][0]["values"][1] == pytest.approx([2.0, 2.0, 2.0])


def test_a_side_that_changed_what_another_had_made_is_named() -> None:
    check = {"kind": "equality", "code": "now", "after": "gpuboot", "by": "ansible", "changed": ""}
    section = report.section(Data([HOST, *samples("nothing/1/0.2ms"), check]), "pictures")
    assert "none failed (Ansible after gpuboot)" in section
    differing_record = {**check, "changed": "Write a file (node1)"}
    section = report.section(
        Data([HOST, *samples("nothing/1/0.2ms"), differing_record]), "pictures"
    )
    assert "**The sides differ**: ansible changed Write a file (node1)" in section


def test_a_section_replaces_the_one_before_and_nothing_else() -> None:
    page = f"before\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n"
    once = report.insert(page, "new")
    assert once == f"before\n\n{report.BEGIN}\n\nnew\n\n{report.END}\n\nafter\n"
    assert report.insert(once, "new") == once
    with pytest.raises(LabError, match="no lines"):
        report.insert("a page without markers", "new")


def test_the_page_has_the_markers_and_no_measurement_is_no_page(tmp_path: Path) -> None:
    text = report.PAGE.read_text()
    assert text.count(report.BEGIN) == text.count(report.END) == 1
    with pytest.raises(LabError, match="no measurement"):
        report.write(tmp_path, tmp_path / "page.md")
