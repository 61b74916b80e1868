"""`gpuboot cost`: its formats, the words of other programs, and what it refuses."""

from __future__ import annotations

import csv
import json
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gpuboot.cli import app, runs
from gpuboot.config.settings import parse_settings
from gpuboot.query import questions
from gpuboot.usage.cost.cost_question import CostQuestion, queries
from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.ranges import RangeQuestion
from gpuboot.usage.series import History, Window, to_json
from tests.documents import ROOT
from tests.unit.made_cluster import H100, example

runner = CliRunner()
PRICE = ["--price", f"{H100}=2.50"]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "october.json"
    path.write_text(to_json(example()))
    return path


def run(*arguments: str | Path) -> Result:
    return runner.invoke(app, ["cost", *map(str, arguments)])


def document(*arguments: str | Path) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_page_shows_what_the_command_prints(recorded: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cost.md").read_text()
    for arguments in (
        ["--by", "team", *PRICE],
        ["--by", "day,namespace", *PRICE],
    ):
        result = run(recorded, *arguments)
        assert result.exit_code == 0, result.output
        assert f"```text\n{result.stdout}```\n" in page


@pytest.mark.parametrize("by", ["namespace", "pod", "model,day"])
def test_notes_are_about_rows_that_exist(recorded: Path, by: str) -> None:
    for form in ("table", "csv", "json"):
        result = run(recorded, "--by", by, "--format", form, *PRICE)
        assert "__unowned__" not in result.output
    assert "__unowned__: namespaces" in run(recorded, "--by", f"{by},team").output


def test_json_has_rows_sums_and_the_proof(recorded: Path) -> None:
    report = document(recorded, "--by", "namespace", "--format", "json", *PRICE)
    assert sum(row["gpu_hours"] for row in report["rows"]) == pytest.approx(
        report["total"]["gpu_hours"]
    )
    assert all(abs(entry["difference"]) < 1e-6 for entry in report["conservation"])
    assert report["resolution_s"] == 60
    bare = document(recorded, "--format", "json")
    assert "gpu_cost" not in bare["total"]
    assert "no money" in " ".join(bare["notes"])


def test_csv_has_rows_alone_and_the_proof_is_on_stderr(recorded: Path) -> None:
    result = run(recorded, "--by", "day,team,model", "--format", "csv", *PRICE)
    rows = list(csv.DictReader(StringIO(result.stdout)))
    assert list(rows[0])[:5] == ["day", "team", "model", "kind", "gpu_hours"]
    assert {row["team"] for row in rows} >= {"research", "__unowned__", "__unallocated__"}
    assert "(difference 0.0e+00)" in result.stderr or "e-" in result.stderr


def test_a_part_of_what_was_recorded(recorded: Path) -> None:
    window = example().window
    report = document(recorded, "--since", "2h", "--until", "2026-10-25T06:00",
                     "--format", "json")  # fmt: skip
    assert report["total"]["gpu_hours"] == pytest.approx(2 * 12)
    outside = run(recorded, "--since", "2026-10-01", "--until", "2026-10-02")
    assert "is not all in the recorded answers" in outside.stderr
    assert window.step == 3600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'INVENTORY'"),
        (["none.json"], "none.json: No such file"),
        (["here.json", "--by", "colour"], "nothing is known by colour"),
        (["here.json", "--price", "NVIDIA B300=3"], "no GPU of this model"),
        (["here.json", "--price", "3"], "'3' is no price"),
        (["here.json", "--since", "2026-10-26", "--until", "2026-10-25"], "has ended"),
        (["wrong.json"], "no file of recorded answers"),
        (["i.py"], "deploys/query.py is not here"),
        (["ftp://prometheus:9090"], "is no address"),
    ],
)
def test_what_is_refused(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(recorded.parent)
    recorded.rename("here.json")
    Path("wrong.json").write_text("{}")
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not result.stdout


def test_the_leader_is_asked_with_the_site_s_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = example()
    cost = parse_settings({"cost": {"gpu_hour": {"*": 2.0}}}).cost
    metadata = {**answer.metadata, "cost": cost.model_dump(mode="json"), "retention": "15d"}
    question_texts: list[str] = []

    def pyinfra(*arguments: Any, **_: Any) -> runs.PyinfraResult:
        question_texts.append(arguments[3]["GPUBOOT_QUESTION"])
        text = to_json(History(answer.window, answer.series, metadata))
        if len(question_texts) > 1:
            text = RangeQuestion({}, answer.window).no_answer("forgotten\n    remedy: x")
        return runs.PyinfraResult(0, text, "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    clock = SimpleNamespace(time=lambda: answer.window.end + 60)
    monkeypatch.setattr(sys.modules["gpuboot.cli.cost_command"], "time", clock)
    saved_file = tmp_path / "kept.json"
    span = f"{len(answer.window.steps)}h"
    report = document("i.py", "--since", span, "--format", "json", "--save", saved_file)
    assert report["prices"] == {"*": 2.0}
    assert document(saved_file, "--format", "json")["total"] == report["total"]
    question = questions.from_json(question_texts[0]).within(parse_settings({}))
    assert isinstance(question, RangeQuestion)
    assert question.window == answer.window
    assert set(question.queries) == set(queries(3600))
    refusal = run("i.py")
    assert refusal.stderr.strip() == "forgotten\n    remedy: x"


def test_a_question_knows_the_settings_of_its_site() -> None:
    now = 1_793_000_000
    question = CostQuestion("2d", "", "", now)
    site = parse_settings(
        {"cost": {"time_zone": "Asia/Kolkata"}, "monitoring": {"retention": "3d"}}
    )
    assert question.within(site).window.step == 1800
    assert question.within(parse_settings({})).window.step == 3600
    with pytest.raises(CostError, match="Prometheus keeps 3d"):
        CostQuestion("4d", "", "", now).within(site)
    plain = RangeQuestion({"up": "up"}, Window(0, 60, 60)).within(site)
    assert plain.site_metadata["cost"]["time_zone"] == "Asia/Kolkata"


@pytest.mark.parametrize(
    "wrong_settings",
    [{"time_zone": "Mars"}, {"pue": 0.5}, {"energy_kwh": -1}],
)
def test_settings_that_are_refused(wrong_settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong_settings))):
        parse_settings({"cost": wrong_settings})
