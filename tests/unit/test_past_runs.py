"""`gpuboot runs`: earlier runs, and the newest compared with one that did the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.plan.history import past_runs
from gpuboot.verify.report.past_runs import ALL, differences, same_kind
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


def test_the_same_kind_is_what_changed_the_same_by_the_same_deploy_on_the_same_hosts() -> None:
    def like(run: Any, *other_runs: Any) -> str:
        match = same_kind(
            run, [(Path(str(number)), past_run) for number, past_run in enumerate(other_runs)]
        )
        return str(match[0]) if match else ""

    unchanged, changed = site(3, changed=False), site(3)
    assert like(unchanged, changed, unchanged) == "1"
    assert like(changed, unchanged, {**changed, "exit": 1}, changed) == "2"
    assert like(unchanged, site(2, changed=False), {**unchanged, "cluster": "x"}) == ""
    assert like(unchanged, {**unchanged, "deploy": "host_layers.py"}, unchanged) == "1"
    newer = json.loads(json.dumps(changed).replace("Set up Drivers", "Load driver 595.91.07"))
    older = json.loads(json.dumps(changed).replace("Set up Drivers", "Load driver 590.48.01"))
    assert like(newer, older) == "0"


def test_differences_of_phases_and_of_the_whole() -> None:
    quick, slow = site(3, changed=False), site(3, changed=False, slower=20)
    by_name = {item.name: item for item in differences(slow, quick)}
    assert by_name["Monitoring"].increase == pytest.approx(19 * 0.05, abs=0.01)
    assert by_name["Verify"].increase == pytest.approx(0)
    assert by_name[ALL].increase == pytest.approx(19 * 0.05, abs=0.01)
    assert (by_name["Drivers"].commands, by_name["Drivers"].commands_before) == (6, 6)


def test_a_phase_that_only_one_run_had_stands_at_its_place() -> None:
    less = site(1)
    less["operations"] = [item for item in less["operations"] if item["phase"] != "Helm"]
    less["spans"] = [span for span in less["spans"] if span["operation"] is None]
    for run, before in ((less, site(1)), (site(1), less)):
        compared = differences(run, before)
        order = [item.name for item in compared]
        assert order.index("Kubernetes") < order.index("Helm") < order.index("Storage")
        assert compared[order.index("Helm")].increase is None


def test_the_command_lists_and_compares(reports: Path) -> None:
    code, output = runs(reports, "lab")
    listing, compared = output.split("\n\n")
    assert code == 0
    assert [line.split()[-1] for line in listing.splitlines()[1:]] == [
        "20261122T120000Z-lab", "20261122T110000Z-lab", "20261122T100000Z-lab",
        "20261121T100000Z-lab",
    ]  # fmt: skip
    assert compared.startswith("the newest against 20261122T100000Z-lab\n")
    monitoring = next(line for line in compared.splitlines() if "Monitoring" in line)
    assert monitoring.split()[1:4] == ["1.0", "0.1", "+0.9"] or "+1.0" in monitoring
    assert len(runs(reports, "lab", "--last", "2")[1].split("\n\n")[0].splitlines()) == 3


def test_the_command_compares_with_the_run_that_is_named(reports: Path) -> None:
    _, output = runs(reports, "lab", "--against", f"{reports}/20261122T110000Z-lab/")
    assert "the newest against 20261122T110000Z-lab" in output
    code, output = runs(reports, "lab", "--against", "20200101T000000Z-lab")
    assert code == 2
    assert "remedy:" in output


def test_the_command_says_where_nothing_is_alike(reports: Path) -> None:
    code, output = runs(reports, "other")
    assert code == 0
    assert "no earlier run did the same" in output
    code, output = runs(reports, "nobody")
    assert code == 2
    assert "no run of cluster nobody" in output


def test_the_command_s_json(reports: Path) -> None:
    code, output = runs(reports, "lab", "--json", "--last", "1")
    document = json.loads(output)
    assert code == 0
    assert document["against"] == "20261122T100000Z-lab"
    assert [item["folder"] for item in document["runs"]] == ["20261122T120000Z-lab"]
    assert document["phases"][-1]["name"] == ALL
    assert document["runs"][0].keys() == {
        "folder", "cluster", "started", "deploy", "seconds", "commands", "changes", "exit",
    }  # fmt: skip
