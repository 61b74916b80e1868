"""Where the time of a run went: shares, and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpuboot.verify.report.run import last_lines, run_html, write_page
from gpuboot.verify.report.timeline.stretches import length, union
from gpuboot.verify.report.timeline.table import phases_json, rows
from gpuboot.verify.report.timeline.terminal import lines
from tests.unit.made_runs import FIRST, RECORDED, operation, run, site, span


def test_intervals_that_meet_are_one() -> None:
    assert union([(3, 4), (0, 1), (0.5, 2)]) == [(0, 2), (3, 4)]
    assert length([(0, 1), (0.5, 2), (3, 3.5)]) == 2.5


def test_rows_of_a_recorded_run_add_up_to_it() -> None:
    by_name = {row.name: row for row in rows(RECORDED)}
    assert list(by_name)[:4] == ["start-up", "connect", "prepare", "read hosts"]
    assert sum(row.seconds for row in by_name.values()) == pytest.approx(
        RECORDED["seconds"], abs=0.3
    )
    command_count = sum(row.commands for row in by_name.values())
    assert command_count == sum(host["commands"] for host in RECORDED["hosts"].values())
    phases = {item["name"]: item for item in phases_json(RECORDED)}
    assert phases["Verify"]["operations"] == 1
    assert phases["Verify"]["seconds"] == pytest.approx(by_name["Verify"].seconds, abs=0.001)
    assert phases["Base"]["hosts"].keys() == RECORDED["hosts"].keys()


def test_a_recorded_first_run_tells_what_it_waited_for() -> None:
    by_name = {row.name: row for row in rows(FIRST)}
    assert by_name["Rollout"].slowest == "cp1"
    assert by_name["Rollout"].waited == pytest.approx(46.4, abs=0.1)
    assert sum(row.changes for row in by_name.values()) == 72
    assert sum(row.seconds for row in by_name.values()) == pytest.approx(FIRST["seconds"], rel=0.02)


def test_shares_of_hosts_their_waits_and_changes() -> None:
    by_name = {row.name: row for row in rows(site(3))}
    drivers = by_name["Drivers"]
    assert drivers.slowest == "node3"
    assert drivers.hosts["node3"].seconds == pytest.approx(4 * 5 / 3)
    assert drivers.hosts["node3"].waited == pytest.approx(4 * 5 / 3 - 0.5)
    assert drivers.hosts["node1"].waited == 0
    assert (drivers.commands, drivers.changes) == (6, 3)
    assert by_name["prepare"].seconds == pytest.approx(1.5 - 0.8)  # less reading the hosts
    assert by_name["read hosts"].commands == 3


def test_commands_to_another_host_than_the_operation_s_are_told() -> None:
    join = operation("Kubernetes", "Join", {"gpu1": (1.0, 2.0)})
    join["commands"] = {"gpu1": 2, "cp1": 1}
    row = rows(run([join], [span("start-up", 0.0, 1.0)]))[-1]
    assert (row.commands, row.hosts["cp1"].commands, row.hosts["cp1"].seconds) == (3, 1, 0)
    assert row.slowest == "gpu1"


def test_a_run_that_was_killed_ends_when_it_was_written() -> None:
    killed = run(
        [operation("Base", "Install", {"a": (1.0, 2.0)})], [span("start-up", 0.0, 1.0)], seconds=9.0
    )
    killed["operations"][0]["ended"] = killed["operations"][0]["hosts"]["a"]["ended"] = None
    assert rows(killed)[-1].hosts["a"].seconds == 8.0
    assert "Base" in run_html(killed, False)


def test_names_cannot_break_the_page() -> None:
    evil = run(
        [operation("<b>", "</svg><script>", {"a&b": (1.0, 2.0)})], [span("start-up", 0.0, 1.0)]
    )
    assert "<script>" not in run_html(evil, False)


def test_the_page_has_a_table_and_no_other_file() -> None:
    page = run_html(RECORDED, True)
    assert "Where the time went" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert not re.search(r"src=|https?://|@import", page)


def test_a_page_is_written_again_from_its_file(tmp_path: Path) -> None:
    write_page(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run.json").write_text(json.dumps(RECORDED))
    write_page(tmp_path)
    page = (tmp_path / "run.html").read_text()
    assert "The run is done" in page
    assert "verify.html" not in page


def test_the_terminal_tells_of_long_runs_that_changed_something() -> None:
    long, unchanged = site(3), site(3, changed=False)
    assert "where the time went:" in last_lines(long, "pyinfra x")
    assert last_lines(unchanged, "pyinfra x") == [
        f"done in {unchanged['seconds']:.0f} s: nothing had to be changed (most of it: "
        "Drivers 6.7 s, Helm 4.0 s, GPU Operator 4.0 s)"
    ]
    assert "where the time went:" in last_lines(unchanged, "pyinfra x", verbose=True)
    short = {**unchanged, "seconds": 3.0}
    assert last_lines(short, "x") == ["done in 3 s: nothing had to be changed"]
    verify_run = {**unchanged, "deploy": "verify.py"}
    assert last_lines(verify_run, "x") == []


def test_the_terminal_s_table_is_narrow_and_aligned() -> None:
    output_lines = list(lines(site(3)))
    assert max(map(len, output_lines)) <= 80
    drivers = next(line for line in output_lines if "Drivers" in line)
    assert drivers.split() == ["Drivers", "6.7", "6.2", "6", "3", "node3", "6.7", "s"]
    assert drivers.index("6.7") + 3 == output_lines[1].index("seconds") + 7
