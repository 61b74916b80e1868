"""`gpuboot report runs`: earlier runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.plan.history import past_runs
from tests.unit.made_runs import site


def write_run(reports: Path, name: str, run: Any) -> None:
    folder = reports / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run))


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """From old to new: a first run, nothing to do, a failure, nothing to do but slower."""
    failed = {**site(3), "exit": 1}
    write_run(tmp_path, "20261121T100000Z-lab", site(3))
    write_run(tmp_path, "20261121T090000Z-lab", {"phases": [], "cluster": "lab"})  # of 0.2
    write_run(tmp_path, "20261122T100000Z-lab", site(3, changed=False))
    write_run(tmp_path, "20261122T110000Z-lab", failed)
    write_run(tmp_path, "20261122T120000Z-lab", site(3, changed=False, slower=20))
    write_run(tmp_path, "20261122T130000Z-other", {**site(1), "cluster": "other"})
    (tmp_path / "20261122T140000Z-lab").mkdir()  # a proof alone has no run.json
    (tmp_path / "latest").symlink_to("20261122T140000Z-lab")
    return tmp_path


def names(reports: Path, cluster: str = "") -> list[str]:
    return [folder.name[9:11] for folder, _ in past_runs(reports, cluster)]


def runs(reports: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["report", "runs", *arguments, "--reports", str(reports)])
    return result.exit_code, result.output


def test_runs_are_read_from_the_newest_on(reports: Path) -> None:
    assert names(reports) == ["13", "12", "11", "10", "10", "09"]
    assert names(reports, "lab") == ["12", "11", "10", "10", "09"]
    assert names(reports, "la") == []
    assert names(reports / "nowhere") == []


def test_runs_of_the_same_second_keep_their_order(tmp_path: Path) -> None:
    for number in ("", "-2", "-10"):
        write_run(tmp_path, f"20261122T100000Z-lab{number}", site(1))
    names = [folder.name for folder, _ in past_runs(tmp_path)]
    assert names == [f"20261122T100000Z-lab{number}" for number in ("-10", "-2", "")]


def test_a_broken_file_is_passed_over(reports: Path) -> None:
    (reports / "20261122T130000Z-other/run.json").write_text('{"half":')
    assert names(reports) == ["12", "11", "10", "10", "09"]


def test_the_command_lists(reports: Path) -> None:
    code, output = runs(reports, "lab")
    assert code == 0
    assert [line.split()[-1] for line in output.splitlines()[1:]] == [
        "20261122T120000Z-lab", "20261122T110000Z-lab", "20261122T100000Z-lab",
        "20261121T100000Z-lab",
    ]  # fmt: skip
    assert len(runs(reports, "lab", "--last", "2")[1].splitlines()) == 3


def test_the_command_says_that_there_is_none(reports: Path) -> None:
    code, output = runs(reports, "nobody")
    assert code == 2
    assert "no run of cluster nobody" in output
    assert "remedy:" in output


def test_the_command_s_json(reports: Path) -> None:
    code, output = runs(reports, "lab", "--json", "--last", "1")
    document = json.loads(output)
    assert code == 0
    assert [item["folder"] for item in document["runs"]] == ["20261122T120000Z-lab"]
    assert document["runs"][0].keys() == {
        "folder", "cluster", "started", "deploy", "seconds", "commands", "changes", "exit",
    }  # fmt: skip
