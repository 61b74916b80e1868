"""`gpuboot profile` over time: windows, models, what Prometheus is asked, and the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, asking
from gpuboot.config.settings import parse_settings
from gpuboot.query.profile.answer import ProfileQuestion
from gpuboot.query.profile.counters import collect
from gpuboot.query.profile.text import is_known, text
from gpuboot.query.questions import from_json
from gpuboot.verify.prometheus import Prometheus
from tests.unit.profile_samples import (
    FREE,
    H100,
    IDLE,
    NOW,
    ZEROS,
    counter,
    profile_single,
    scraped,
    series,
)


def test_means_of_five_minutes() -> None:
    (samples,) = collect(series(scraped(phases={100: {"sm": 0.1}}))).values()
    window = samples.at(NOW, 15)
    assert window.values["sm"] == pytest.approx((13 * 0.85 + 7 * 0.1) / 20)
    assert window.samples == 1.0
    assert window.memory_ratio == pytest.approx(0.875)
    assert window.pcie_max == pytest.approx(16 * 985e6 * 4)


@pytest.mark.parametrize(
    ("points", "share"),
    [
        ({200: 0, 100: 10e9, 0: 10e9}, 0.05),
        ({200: 2e14, 0: 2e14 + 20e9}, 0.1),  # two days: above DCGM's blank of other fields
        ({200: 50e9, 100: 5e9, 0: 15e9}, 0.075),  # the driver was loaded anew
        ({200: 50e9, 150: 55e9, 140: 52e9, 100: 56e9, 0: 60e9}, 0.05),  # two exporters
        ({100: 10e9, 0: 9e9}, 0.0),
        ({200: 9.3e18, 100: 9.3e18}, None),
        ({100: 5e9}, None),
    ],
)
def test_counters_of_time(points: dict[float, float], share: float | None) -> None:
    (samples,) = collect(series([*scraped(), counter("hw_thermal", points)])).values()
    value = samples.at(NOW, 15).get("hw_thermal")
    assert value == (None if share is None else pytest.approx(share))


def test_the_class_of_most_of_the_window() -> None:
    answer = profile_single(scraped(phases={360: {**IDLE, **FREE}}))
    assert answer.main_class.name == "compute_bound"
    assert answer.shares["compute_bound"] + answer.shares["idle"] + answer.shares.get(
        "balanced", 0
    ) + answer.shares.get("input_bound", 0) == pytest.approx(1)
    assert answer.shares["idle"] > 0.1
    assert not profile_single(scraped()).mixed


def test_profiling_that_stays_at_0_while_kernels_run_is_no_idle_gpu() -> None:
    """NVIDIA/DCGM issue 303."""
    answer = profile_single(scraped(phases={1200: ZEROS}))
    assert (answer.main_class.name, answer.main_class.confidence) == ("busy", "low")
    assert "at 0 while kernels run" in answer.notes[0]
    assert profile_single(scraped(phases={1200: IDLE})).main_class.name == "idle_held"


def test_a_percentage_of_millions_is_no_sample() -> None:
    """NVIDIA/DCGM issue 199."""
    rows = scraped(phases={1200: IDLE})
    rows[-1]["values"][-3:] = [[time, "808334905"] for time, _ in rows[-1]["values"][-3:]]
    (samples,) = collect(series(rows)).values()
    assert all(max(points.values()) < 1e10 for points in samples.fields.values())
    for row in rows:
        if row["metric"]["__name__"] == "DCGM_FI_DEV_GPU_UTIL":
            row["values"][-1][1] = "808334905"
    assert profile_single(rows).means.get("util") == 0


def test_holes_in_the_samples_are_no_class() -> None:
    complete = scraped()
    holed = [{**row, "values": row["values"][::2]} for row in complete]
    assert profile_single(holed).main_class.name == "insufficient_data"
    assert not profile_single(holed).is_known


def test_a_mig_instance_and_a_shared_gpu_are_told_as_such() -> None:
    instance = profile_single(scraped(GPU_I_ID="3", GPU_I_PROFILE="1g.10gb"))
    assert instance.name == "GPU-a/3"
    assert any("MIG instance" in note for note in instance.notes)
    pods = [row for pod in ("a", "b") for row in scraped(namespace="ml", pod=pod)]
    assert any("shared by several pods" in note for note in profile_single(pods).notes)


@pytest.mark.parametrize(
    ("model", "name"), [(H100, "communication_bound"), ("NVIDIA H200 NVL", "balanced")]
)
def test_a_link_is_judged_by_what_the_model_s_carries(model: str, name: str) -> None:
    """Of 450 GB/s the half; what a bridge of an NVL carries is not known."""
    sends: dict[float, dict[str, float]] = {1200: {"tensor": 0.1, "nvlink_tx": 230e9}}
    assert profile_single(scraped(phases=sends, modelName=model)).main_class.name == name


class Fake:
    """Prometheus' HTTP API: series for range selectors, and answers by a part of the query."""

    def __init__(self, rows: list[dict[str, Any]], **vectors: list[dict[str, Any]]) -> None:
        self.rows, self.vectors = rows, vectors
        self.queries: list[str] = []

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        expression = dict(query or {})["query"]
        self.queries.append(expression)
        if expression.startswith("{__name__=~"):
            return self._answer("matrix", self.rows)
        if expression == "vector(time())":
            return self._answer("vector", [{"metric": {}, "value": [NOW, str(NOW)]}])
        for part, rows in self.vectors.items():
            if part in expression:
                return self._answer("vector", rows)
        return self._answer("vector", [])

    @staticmethod
    def _answer(kind: str, rows: list[dict[str, Any]]) -> Any:
        return {"status": "success", "data": {"resultType": kind, "result": rows}}


def vector(value: float, **labels: str) -> list[dict[str, Any]]:
    return [{"metric": labels, "value": [NOW, str(value)]}]


def profile_answer(fake: Fake, question: ProfileQuestion) -> Any:
    return json.loads(question.answer(Prometheus(fake, "")))


POD = ProfileQuestion("pod", "trainer-0", "ml")


def test_the_answer_for_a_pod() -> None:
    fake = Fake(scraped(namespace="ml", pod="trainer-0"))
    answer = profile_answer(fake, POD)
    (gpu,) = answer["gpus"]
    assert (gpu["class"], gpu["node"], gpu["pods"]) == ("compute_bound", "gpu1", ["ml/trainer-0"])
    assert is_known(answer)
    lines = text(answer)
    for part in ("pod ml/trainer-0: 1 GPU, 15 minutes until", "bound by arithmetic",
                 "SM active 0.85 >= 0.8  [NVIDIA", "what to try first"):  # fmt: skip
        assert part in lines


def test_a_pod_that_has_just_begun_is_judged_by_its_own_time() -> None:
    rows = scraped(start_s=420, namespace="ml", pod="trainer-0")
    assert profile_answer(Fake(rows), POD)["gpus"][0]["class"] == "compute_bound"
    samples = scraped(start_s=100, namespace="ml", pod="trainer-0")
    answer = profile_answer(Fake(samples), POD)
    assert answer["gpus"][0]["class"] == "insufficient_data"
    assert not is_known(answer)
    node = ProfileQuestion("node", "gpu1")
    assert profile_answer(Fake(rows), node)["gpus"][0]["class"] == "insufficient_data"


def test_a_pod_that_has_ended_is_judged_until_its_end() -> None:
    rows = scraped(start_s=850, end_s=300, namespace="ml", pod="trainer-0")
    assert profile_answer(Fake(rows), POD)["gpus"][0]["class"] == "compute_bound"


def test_a_job_is_its_pods() -> None:
    job = ProfileQuestion("job", "train", "ml")
    empty_answer = profile_answer(Fake([]), job)
    assert empty_answer["reason"] == "kube-state-metrics knows no pod of job ml/train"
    fake = Fake(scraped(namespace="ml", pod="train.0-x"), kube_pod_owner=vector(1, pod="train.0-x"))
    assert profile_answer(fake, job)["gpus"][0]["class"] == "compute_bound"
    assert any(r'pod=~"train\\.0\\-x"' in request for request in fake.queries)


def test_hosts_explain_what_waits() -> None:
    bursts: dict[float, dict[str, float]] = {
        since: {"engine": 0.9 if since % 60 else 0.05, "sm": 0.3, "tensor": 0.1}
        for since in range(30, 1230, 30)
    }
    rows = scraped(phases=bursts, namespace="ml", pod="trainer-0")
    unexplained = profile_answer(Fake(rows), POD)["gpus"][0]
    assert (unexplained["class"], unexplained["confidence"]) == ("input_bound", "low")
    explained = profile_answer(Fake(rows, container_cpu_cfs=vector(0.6, node="gpu1")), POD)["gpus"][
        0
    ]
    assert (explained["class"], explained["confidence"]) == ("input_bound", "high")


@pytest.mark.parametrize(
    ("question", "vectors", "expected"),
    [
        (POD, {}, "names pod trainer-0, and it asked for no GPU"),
        (POD, {"kube_pod_container_resource": vector(2)}, "which asked for 2 GPUs"),
        (ProfileQuestion("node", "gpu9"), {}, "no sample of the last 15m is about node gpu9"),
    ],
)
def test_why_nothing_is_known(
    question: ProfileQuestion, vectors: dict[str, Any], expected: str
) -> None:
    answer = profile_answer(Fake([], **vectors), question)
    assert expected in answer["reason"]
    assert not is_known(answer)
    assert "unknown: " in text(answer)


def test_questions_travel_as_json() -> None:
    question = replace(POD, own={"pipe_busy": 0.6})
    assert from_json(question.to_json()) == question
    settings = parse_settings({"profile": {"thresholds": {"sm_needed": 0.7, "pipe_busy": 0.4}}})
    within = question.within(settings)
    assert within.own == {"sm_needed": 0.7, "pipe_busy": 0.6}
    assert within.interval_s == 15


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(scraped(namespace="ml", pod="trainer-0"))
    monkeypatch.setattr(
        asking, "answer_question", lambda question, *_: profile_answer(fake, question)
    )
    runner = CliRunner()
    result = runner.invoke(app, ["profile", "http://x", "pod", "trainer-0", "-n", "ml"])
    assert result.exit_code == 0, result.output
    assert "bound by arithmetic" in result.output
    as_json = runner.invoke(app, ["profile", "http://x", "gpu", "GPU-a", "--json"])
    assert json.loads(as_json.output)["gpus"][0]["class"] == "compute_bound"
    monkeypatch.setattr(
        asking, "answer_question", lambda question, *_: profile_answer(Fake([]), question)
    )
    assert runner.invoke(app, ["profile", "http://x", "node", "gpu1"]).exit_code == 2
