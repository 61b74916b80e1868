"""`gpuboot query`: its question, its text and its command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.config.settings import parse_settings
from gpuboot.query.questions import from_json
from gpuboot.query.usage_query import UsageQuery, text
from gpuboot.verify import http_reader
from gpuboot.verify.prometheus import Prometheus
from tests.unit.test_usage import FREE, USED, UTIL, Fake, samples


def test_questions_travel_as_json() -> None:
    question = UsageQuery("pod", "trainer-0", "team-a", 60.0)
    assert from_json(question.to_json()) == question
    settings = parse_settings({"exporter": {"scrape_interval": "5s"}})
    assert question.within(settings).stale_s == 10.0
    assert UsageQuery("gpu", "x", stale_s=7).within(settings).stale_s == 7


def test_text_for_people() -> None:
    question = UsageQuery("pod", "trainer-0", "team-a")
    document = json.loads(question.answer(Prometheus(Fake(samples("GPU-a")), "")))
    lines = text(document, ("engine",)).splitlines()
    assert lines[0] == "pod team-a/trainer-0: GPU-a"
    assert lines[1].split()[:2] == ["engine", "50.0%"]
    assert "newest sample 4 s old" in lines[1]
    assert len(lines) == 2


def test_text_of_one_gpu_names_it_once_with_its_node_and_no_promql() -> None:
    labels = samples("GPU-a", node="gpu1", Hostname="exporter-x")
    document = json.loads(UsageQuery("gpu", "GPU-a").answer(Prometheus(Fake(labels), "")))
    lines = text(document, ("engine", "memory")).splitlines()
    assert lines[0] == "gpu GPU-a on gpu1"
    assert lines[1].endswith("of DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    assert "{" not in "\n".join(lines)
    assert "avg_over_time" in document["values"]["engine"]["source"]  # for programs


runner = CliRunner()


def test_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(samples("GPU-a", {UTIL: 90.0, USED: 1.0, FREE: 1.0}))
    monkeypatch.setattr(http_reader, "HttpReader", lambda *_: fake)
    arguments = ["query", "http://p:9090", "pod", "trainer-0", "-n", "team-a"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "sm      unknown: no DCGM_FI_PROF_SM_ACTIVE" in result.stdout
    engine = runner.invoke(app, [*arguments, "--metric", "engine", "--json"])
    assert engine.exit_code == 0
    assert json.loads(engine.stdout)["values"]["engine"]["value"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["i.py", "pod"], "Missing argument 'name'"),
        (["http://p", "pod", "x", "--metric", "speed"], "no such metric: speed"),
        (["ftp://prometheus:9090", "pod", "x"], "is no address"),
        (["i.py", "pod", "x"], "deploys/query.py is not here"),
    ],
)
def test_questions_that_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["query", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_token_stays_off_the_open_network() -> None:
    with pytest.raises(ValueError, match="https only"):
        http_reader.HttpReader("http://prometheus.example.org", "secret")
    assert http_reader.HttpReader("http://127.0.0.1:9090", "secret")
