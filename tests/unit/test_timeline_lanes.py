"""The lanes of where the time of a run went: within the run whatever was noted, and few."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.verify.report.timeline.lanes import CONTROL, MOST_LANES, PHASES, lanes, ticks
from tests.unit.made_runs import FIRST, RECORDED, run, site

RUNS = [RECORDED, FIRST, site(1), site(3), site(40), site(3, slower=30_000)]


@pytest.mark.parametrize("recorded", RUNS)
def test_bars_are_within_the_run_and_have_titles(recorded: Any) -> None:
    bars = [bar for lane in lanes(recorded) for bar in lane.bars]
    assert bars
    for bar in bars:
        assert bar.left >= 0, bar
        assert bar.left + bar.width <= 100.02, bar
        assert bar.title, bar


@pytest.mark.parametrize("recorded", RUNS)
def test_the_longest_chain_is_in_some_lane_at_all_times(recorded: Any) -> None:
    chain = [bar for lane in lanes(recorded) for bar in lane.bars if bar.kind == "chain"]
    assert sum(bar.width for bar in chain) == pytest.approx(100, abs=len(chain) * 0.2)


def test_each_phase_has_its_name() -> None:
    phases, control, *hosts = lanes(site(3))
    assert (phases.name, control.name) == (PHASES, CONTROL)
    assert [lane.name for lane in hosts] == ["node1", "node2", "node3"]
    assert {bar.kind for bar in phases.bars} == {"phase"}
    assert hosts[0].note.endswith("commands")


def test_waits_and_changes_are_marked() -> None:
    bars = [(lane.name, bar) for lane in lanes(site(3)) for bar in lane.bars]
    titles = [f"{name}: {bar.title}" for name, bar in bars if bar.kind == "wait"]
    assert len(titles) == 3
    assert "node3: waited for: Drivers ready (6.2 s)" in titles
    assert sum(bar.kind == "changed" for _, bar in bars) > 3
    unchanged = [bar.kind for lane in lanes(site(3, changed=False)) for bar in lane.bars]
    assert "changed" not in unchanged


def test_more_hosts_than_lanes_share_the_last_one() -> None:
    names = [lane.name for lane in lanes(site(300))]
    assert len(names) == MOST_LANES + 2
    assert names[-1] == f"{300 - MOST_LANES + 1} other hosts"
    assert "node300" in names  # the slowest
    assert "node1" in names  # the run waited for it
    assert max(len(bar.title) for lane in lanes(site(300)) for bar in lane.bars) < 200


def test_an_empty_run_breaks_nothing() -> None:
    assert lanes(run([], []))


def test_ticks_are_minutes_and_seconds() -> None:
    assert ticks({"seconds": 754.0}) == [
        (0, "0:00"), (25, "3:08"), (50, "6:17"), (75, "9:26"), (100, "12:34"),
    ]  # fmt: skip
