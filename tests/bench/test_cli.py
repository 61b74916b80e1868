"""Which commands of scripts/bench write docs/performance.md, and which leave it alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import cli, report
from bench.matrix import Cell
from bench.results import Results


class FakeRunner:
    """Writes one sample of each cell, as a measurement does."""

    def __init__(self, lab: Any, sides: Any, results: Results, runs: int, progress: Any) -> None:
        self._results = results

    def measure(self, cells: Sequence[Cell], budget_s: float | None) -> list[Cell]:
        """Note that gpuboot took 2 s in each."""
        for cell in cells:
            self._results.append("sample", cell=str(cell), side="gpuboot", seconds=2.0)
        return []


@pytest.mark.parametrize(
    ("options", "file"), [({"cells": "nothing/8"}, "cells.jsonl"), ({}, "samples.jsonl")]
)
def test_measuring_prints_a_table_and_leaves_the_page_alone(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, str],
    file: str,
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(cli, "Runner", FakeRunner)
    monkeypatch.setattr(cli, "machines", SimpleNamespace(ensure=lambda progress: None))
    monkeypatch.setattr(Results, "begin", lambda self: None)
    arguments: dict[str, Any] = {"full": False, "cells": "", "minutes": 0, "runs": 1}
    cli.measure_cells(
        **arguments | options, sides="gpuboot", folder=tmp_path / "raw", keep_machines=True
    )
    [raw] = (tmp_path / "raw").iterdir()
    assert raw.name == file
    cell = json.loads(raw.read_text().splitlines()[0])["cell"]
    assert f"| {cell} | 2.00 (2.00–2.00, of 1) |" in capsys.readouterr().out
    assert not page.exists()
