"""Cells, their order, and what is told of several runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import matrix
from bench.matrix import Cell
from bench.results import Results
from bench.statistics import Summary, ratio, summarize

SIDES = ["gpuboot", "ansible", "mitogen"]


def test_a_cell_is_read_as_it_is_written() -> None:
    assert [matrix.parse(str(cell)) for cell in matrix.full()] == [(c,) for c in matrix.full()]
    assert matrix.parse("nothing/8, fresh/2/80ms,nothing/8") == (
        Cell("nothing", 8, "0.2ms"),
        Cell("fresh", 2, "80ms"),
    )


@pytest.mark.parametrize("text", ["", "nothing", "nothing/x", "all/1", "nothing/1/5ms"])
def test_what_is_no_cell_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"SCENARIO/HOSTS/NETWORK.*nothing, line, fresh"):
        matrix.parse(text)


def test_the_full_matrix_has_each_cell_once_and_begins_with_the_default() -> None:
    cells = matrix.full()
    assert len(cells) == len(set(cells)) == 3 * 4 * 4
    assert cells[: len(matrix.DEFAULT)] == matrix.DEFAULT


def test_each_side_comes_first_in_its_turn() -> None:
    assert [matrix.turns(SIDES, number)[0] for number in range(4)] == [*SIDES, "gpuboot"]
    assert all(sorted(matrix.turns(SIDES, number)) == sorted(SIDES) for number in range(5))


def test_the_median_and_range_of_runs() -> None:
    assert summarize([3.0, 1.0, 9.0, 2.0, 4.0]) == Summary(3.0, 1.0, 9.0, 5)
    assert summarize([]) is None


def test_a_ratio_needs_both_medians() -> None:
    slow, fast = summarize([20.0] * 5), summarize([0.8] * 5)
    assert ratio(slow, fast) == 25.0
    assert ratio(slow, None) is None
    assert ratio(None, fast) is None


def test_rounds_that_were_finished_are_kept(tmp_path: Path) -> None:
    results, cell = Results(tmp_path / "samples.jsonl", "code1"), Cell("nothing", 1)
    assert results.rounds(cell, SIDES) == 0
    for side in (*SIDES, *SIDES, "gpuboot"):
        results.append("sample", cell=str(cell), side=side, seconds=1.0)
    results.append("sample", cell=str(Cell("nothing", 2)), side="gpuboot", seconds=1.0)
    assert results.rounds(cell, SIDES) == 2


def test_what_other_code_was_measured_to_take_does_not_count(tmp_path: Path) -> None:
    cell, path = Cell("nothing", 1), tmp_path / "samples.jsonl"
    Results(path, "before").append("sample", cell=str(cell), side="gpuboot", seconds=1.0)
    assert Results(path, "now").rounds(cell, ["gpuboot"]) == 0
