"""Where the time of a run went: shares, the longest chain, and the page."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from gpuboot.verify.report.run import last_lines, run_html
from gpuboot.verify.report.timeline.longest_chain import BETWEEN, longest_chain, longest_links
from gpuboot.verify.report.timeline.stretches import length, union
from gpuboot.verify.report.timeline.table import lines, phases_json, rows
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
    longest = longest_links(FIRST, 1)[0]
    assert (longest.stage, longest.host) == ("Rollout", "cp1")
    assert longest.waited == pytest.approx(46.4, abs=0.1)
    by_name = {row.name: row for row in rows(FIRST)}
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


def gapless(chain: Any, seconds: float) -> bool:
    ends = [0.0, *(item.finished for item in chain)]
    begins = [*(item.started for item in chain), seconds]
    return all(abs(a - b) <= 0.0011 for a, b in zip(ends, begins, strict=True))


@pytest.mark.parametrize("recorded", [RECORDED, FIRST, site(1), site(3), site(40)])
def test_the_longest_chain_is_the_whole_run(recorded: Any) -> None:
    chain = longest_chain(recorded)
    assert gapless(chain, recorded["seconds"])
    assert sum(item.seconds for item in chain) == pytest.approx(recorded["seconds"], abs=0.2)


def test_the_longest_chain_goes_by_the_slowest_host_of_each_operation() -> None:
    chain = longest_chain(site(3))
    links = {item.stage: item.host for item in chain if item.host}
    assert links["Drivers"] == "node3"
    assert links["Helm"] == "node1"
    hostless_stages = {item.stage for item in chain if not item.host}
    assert hostless_stages == {"start-up", "connect", "prepare", "read hosts", BETWEEN}


def test_what_the_control_machine_does_has_its_own_name() -> None:
    spans = [span("start-up", 0.0, 0.5), span("prepare", 0.5, 3.0), span("compare", 1.0, 2.5)]
    spans += [span("compare", 1.1, 1.6, "a"), span("your answer", 2.7, 2.9, wait=True)]
    run_record = run([operation("Base", "Install", {"a": (3.0, 4.0)})], spans)
    chain = longest_chain(run_record)
    assert [(item.stage, item.host, round(item.seconds, 1)) for item in chain] == [
        ("start-up", "", 0.5), ("prepare", "", 0.5), ("compare", "", 0.1), ("compare", "a", 0.5),
        ("compare", "", 0.9), ("prepare", "", 0.2), ("your answer", "", 0.2), ("prepare", "", 0.1),
        ("Base", "a", 1.0), (BETWEEN, "", 0.1),
    ]  # fmt: skip
    assert chain[6].waited == pytest.approx(0.2)


def test_hosts_that_take_turns_are_all_in_the_chain() -> None:
    turns = {"a": (1.0, 2.0), "b": (2.0, 4.0), "c": (4.0, 5.0)}
    serial = run([operation("Drivers", "Reboot", turns)], [span("start-up", 0.0, 1.0)])
    assert [item.host for item in longest_chain(serial)] == ["", "a", "b", "c", ""]
    longest = longest_links(serial, 2)
    assert [(item.host, item.seconds) for item in longest] == [("b", 2.0), ("", 1.0)]


def test_the_longest_chain_ends_whatever_was_noted() -> None:
    """Moments are rounded to milliseconds: steps of one or two must not go round in circles."""
    dice = random.Random(1)
    for _ in range(200):
        operations, moment = [], 0.1
        for _ in range(20):
            times = {}
            for host in "abc":
                started = round(moment + dice.choice((0, 0.001, 0.002)), 3)
                times[host] = started, round(started + dice.choice((0, 0.001, 0.002, 0.003)), 3)
            operations.append(operation("Base", "Install", times))
            moment = max(end for _, end in times.values())
        run_record = run(operations, [span("start-up", 0.0, 0.1)])
        chain = longest_chain(run_record)
        assert sum(item.seconds for item in chain) == pytest.approx(run_record["seconds"], abs=0.1)


def test_a_run_that_was_killed_ends_when_it_was_written() -> None:
    killed = run(
        [operation("Base", "Install", {"a": (1.0, 2.0)})], [span("start-up", 0.0, 1.0)], seconds=9.0
    )
    killed["operations"][0]["ended"] = killed["operations"][0]["hosts"]["a"]["ended"] = None
    assert longest_chain(killed)[-1].finished == 9.0
    assert "Base" in run_html(killed, False)


def test_names_cannot_break_the_page() -> None:
    evil = run(
        [operation("<b>", "</svg><script>", {"a&b": (1.0, 2.0)})], [span("start-up", 0.0, 1.0)]
    )
    assert "<script>" not in run_html(evil, False)


def test_the_page_has_its_table_and_no_other_file() -> None:
    page = run_html(RECORDED, True)
    assert "Where the time went" in page
    assert page.count("<tr><td>") >= len(rows(RECORDED)) + len(RECORDED["hosts"])
    assert "What the run waited for longest" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert not re.search(r"src=|https?://|@import", page)


def test_the_parts_of_the_proof_are_told_where_it_took_long() -> None:
    run_record = site(3)
    run_record["operations"][7]["parts"] = {"workload": 3.1, "metrics": 0.4}
    assert "workload 3.1 s, metrics 0.4 s" in run_html(run_record, True)


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
