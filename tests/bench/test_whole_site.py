"""The table of runs of the whole site."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import whole_site
from bench.data import Data
from bench.results import Results
from bench.whole_site import section

HOST = {
    "kind": "host", "at": "2026-01-02T00:00:00+00:00", "code": "a", "cores": 2, "cpu": "cpu",
    "memory_gib": 24, "kernel": "6", "python": "3.11", "revision": "abc",
    "versions": {"pyinfra": "3"},
}  # fmt: skip


def run(row: str, seconds: float) -> dict[str, object]:
    commands = {} if row == "plan" else {"cp1": 3, "gpu1": 2}
    return {"kind": "site", "at": HOST["at"], "row": row, "seconds": seconds, "cpu_s": 1.5,
            "commands": commands}  # fmt: skip


def rows(*runs: dict[str, object]) -> dict[str, list[str]]:
    lines = section(Data([HOST, *runs])).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    return {row[0]: row[1:] for row in cells[2:]}


def test_a_median_within_its_limit_is_met_and_another_missed() -> None:
    table_rows = rows(*(run("nothing", value) for value in (4.0, 5.0, 9.0)), run("verify", 4.5))
    assert table_rows["nothing to do, proof included"] == [
        "5.0 (4.0–9.0, 3 runs)", "6: met", "1.5 (1.5–1.5, 3 runs)", "3"
    ]  # fmt: skip
    assert table_rows["`gpuboot verify`"][:2] == ["4.5 (one run)", "4: **missed**"]


def test_what_was_not_run_is_said_to_be_so() -> None:
    assert rows(run("plan", 2.0))["from booted machines to proven"][0] == "not run"
    assert rows(run("plan", 2.0))["`--dry`, nothing to do"][-1] == "–"


def test_what_is_measured_already_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results(tmp_path / whole_site.FILE, "now")
    for _ in range(2):
        results.append("site", row="plan", seconds=3.0, cpu_s=1.0, commands={})
    calls: list[str] = []
    monkeypatch.setattr(whole_site, "_lab", lambda *words: calls.append(words[0]))
    monkeypatch.setattr(whole_site, "_run", lambda name: (1.0, 1.0, {}))
    whole_site.measure(results, 2, lambda line: None)
    assert calls == []
    whole_site.measure(results, 3, lambda line: None)
    assert calls == ["up", "down"]
