"""What limits a GPU's work: each class, what nearly is one, and what nobody can tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from gpuboot.cli import app, asking
from gpuboot.config.settings import parse_settings
from gpuboot.config.settings.profile import TABLE, Profile, thresholds
from gpuboot.dashboards.classify import classification
from gpuboot.telemetry.fields import BY_NAME
from gpuboot.telemetry.profile.advice import ADVICE
from gpuboot.telemetry.profile.answer import ProfileQuestion
from gpuboot.telemetry.profile.classes import Context, HostView, classify
from gpuboot.telemetry.profile.counters import FIELDS, GAUGES, TIMES, Means, collect
from gpuboot.telemetry.profile.roofline import peak, position
from gpuboot.telemetry.profile.text import known, text
from gpuboot.telemetry.profile.window import Profile as DeviceProfile
from gpuboot.telemetry.profile.window import Span, profile
from gpuboot.telemetry.questions import from_json
from gpuboot.verify.prometheus import Prometheus, Series

LIMITS = thresholds()
NOW = 100_000.0
H100 = "NVIDIA H100 80GB HBM3"
PCIE_5 = {"pcie_gen": 5, "pcie_width": 16}  # 63 GB/s in each direction
TRAINS = {
    "engine": 0.95, "sm": 0.85, "occupancy": 0.4, "tensor": 0.55, "fp64": 0.0, "fp32": 0.1,
    "fp16": 0.0, "dram": 0.4, "memory_used": 70000, "memory_free": 10000,
    "pcie_rx": 1e9, "pcie_tx": 1e9, "nvlink_rx": 5e9, "nvlink_tx": 5e9, **PCIE_5,
}  # fmt: skip
NO_NVLINK = {"nvlink_rx": None, "nvlink_tx": None}
FREE = {"memory_used": 10, "memory_free": 80000}
IDLE = {"engine": 0.0, "sm": 0.0, "tensor": 0.0, "fp32": 0.0, "dram": 0.0}


def means(samples: float = 1.0, variation: float | None = 0.1, **values: float | None) -> Means:
    kept = {name: value for name, value in (TRAINS | values).items() if value is not None}
    return Means(kept, samples, variation)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "compute_bound"),
        ({"tensor": 0.5, "sm": 0.8, "dram": 0.599}, "compute_bound"),
        ({"tensor": 0.1, "fp32": 0.6}, "compute_bound"),
        ({"tensor": 0.49}, "balanced"),
        ({"sm": 0.79}, "balanced"),
        ({"dram": 0.6, "tensor": 0.7}, "memory_bound"),
        ({"dram": 0.6, "tensor": 0.76}, "balanced"),  # 0.75 of the ceiling, and the pipe does more
        ({"dram": 0.65, "sm": 0.5, "tensor": 0.2}, "memory_bound"),
        ({"dram": 0.65, "sm": 0.49, "tensor": 0.2}, "latency_bound"),
        ({"dram": 0.65, "sm": 0.49, "tensor": 0.2, "engine": 0.79}, "balanced"),
        ({**IDLE, **FREE}, "idle"),
        ({**IDLE, **FREE, "engine": 0.049, "dram": 0.019}, "idle"),
        ({**IDLE, **FREE, "dram": None}, "idle"),
        (IDLE, "idle_held"),
        ({**IDLE, "engine": 0.05}, "balanced"),
        ({**IDLE, "dram": 0.02}, "balanced"),
        ({"hw_thermal": 0.05}, "thermally_throttled"),
        ({"hw_thermal": 0.049}, "compute_bound"),
        ({"hw_thermal": 0.5, "engine": 0.29, "sm": 0.2}, "balanced"),  # heat of its neighbours
        ({"sw_thermal": 0.2}, "thermally_throttled"),
        ({"sw_thermal": 0.19}, "compute_bound"),
        ({**IDLE, "power_brake": 0.01}, "thermally_throttled"),
        ({"power_cap": 0.9}, "compute_bound"),
        ({"tensor": 0.2, "nvlink_tx": 230e9}, "communication_bound"),
        ({"tensor": 0.2, "nvlink_tx": 220e9}, "balanced"),
        ({"tensor": 0.3, "nvlink_tx": 230e9}, "balanced"),
        ({"tensor": 0.2, "pcie_tx": 40e9}, "balanced"),  # the GPU has NVLink for that
        ({"tensor": 0.2, "pcie_tx": 40e9, **NO_NVLINK}, "communication_bound"),
        ({"tensor": 0.2, "pcie_rx": 40e9}, "pcie_bound"),
        ({"tensor": 0.2, "pcie_rx": 31e9}, "balanced"),
        ({"tensor": 0.2, "pcie_rx": 40e9, "pcie_width": None}, "balanced"),
        ({"tensor": 0.2, "pcie_rx": 20e9, "pcie_width": 8}, "pcie_bound"),
        ({"engine": 0.5, "sm": 0.4, "tensor": 0.2, "variation": 0.8}, "input_bound"),
        ({"engine": 0.5, "sm": 0.4, "tensor": 0.2, "variation": 0.5}, "balanced"),
        ({"engine": 0.7, "sm": 0.4, "tensor": 0.2, "variation": 0.8}, "balanced"),
        ({"engine": 0.9, "sm": 0.3, "tensor": 0.1}, "latency_bound"),
        ({"samples": 0.79}, "insufficient_data"),
        ({"engine": None, "util": 3.0, **FREE}, "idle"),
        ({"engine": None, "util": 3.0}, "idle_held"),
        ({"engine": None, "util": 90.0}, "busy"),
        ({"engine": None}, "insufficient_data"),
        ({"sm": None, "dram": None, "tensor": None, "fp32": None}, "busy"),  # MIG of a vGPU
    ],
)
def test_classes_and_what_is_nearly_one(values: dict[str, Any], name: str) -> None:
    found = classify(means(**values), Context(nvlink_max=450e9), LIMITS)
    assert found.name == name, found
    for item in found.evidence:
        assert (item.value >= item.limit) is item.above, item
        assert item.source


def test_a_pod_s_name_holds_an_idle_gpu() -> None:
    assert classify(means(**IDLE, **FREE), Context(held=True), LIMITS).name == "idle_held"


def test_nvlink_that_nobody_knows_is_not_judged() -> None:
    busy = means(tensor=0.2, nvlink_tx=440e9)
    assert classify(busy, Context(), LIMITS).name == "balanced"


def test_input_is_suspected_until_the_host_tells() -> None:
    waits = means(engine=0.5, sm=0.4, tensor=0.2, variation=0.8)
    assert classify(waits, Context(), LIMITS).confidence == "low"
    seen = classify(waits, Context(host=HostView(iowait=0.4, cpu_throttled=0.1)), LIMITS)
    assert seen.confidence == "high"
    assert [item.what for item in seen.evidence][-1] == "the host's CPUs wait for disks (iowait)"


def test_what_has_no_profiling_is_told_with_less_confidence() -> None:
    found = classify(means(engine=None, util=90.0), Context(), LIMITS)
    assert found.confidence == "low"
    assert "no profiling fields" in found.notes[0]


def test_a_power_limit_is_a_note() -> None:
    found = classify(means(power_cap=0.9), Context(), LIMITS)
    assert found.notes == ("power_capped: held down by its power limit in 90% of the time",)


def test_numbers_say_whose_they_are() -> None:
    sources = {item.source for item in TABLE.values()}
    assert sources == {"gpuboot", "NVIDIA, DCGM user guide, profiling metrics"}
    own = thresholds({"pipe_busy": 0.6})
    found = classify(means(tensor=0.55), Context(), own)
    assert found.name == "balanced"
    assert {item.source for item in found.evidence} >= {"profile.thresholds"}


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValidationError, match="no such threshold: pipe_bsy; there are: sm_needed"):
        Profile(thresholds={"pipe_bsy": 0.5})
    with pytest.raises(ValidationError, match="up to 1: idle_dram"):
        Profile(thresholds={"idle_dram": 2.0})


def test_the_dashboard_has_the_same_numbers() -> None:
    expression = classification()
    for name in ("sm_needed", "sm_poor", "idle_engine", "idle_dram", "at_work", "hw_thermal"):
        assert f" {LIMITS[name]:g}" in expression, name
    assert f"{LIMITS.busy_dram:g}" in expression


def test_the_page_has_every_class_and_number() -> None:
    page = (Path(__file__).parents[2] / "docs/profile.md").read_text()
    for name, item in TABLE.items():
        assert f"| `{name}` | {item.value:g} | {item.meaning} | {item.source} |" in page
    for name in ADVICE:
        assert f"`{name}`" in page


def test_every_counter_is_collected_by_default_and_every_class_has_advice() -> None:
    assert all(BY_NAME[name].default for name in FIELDS)
    assert set(ADVICE) >= {"idle_held", "communication_bound", "busy"}
    assert all(item.first and item.meaning for item in ADVICE.values())


UNITS = {"util": 90.0, "sm_clock": 1755.0, "sm_clock_max": 1980.0}


def scraped(
    uuid: str = "GPU-a",
    start_s: float = 1200,
    end_s: float = 4,
    every: float = 15,
    phases: Mapping[float, Mapping[str, float]] | None = None,
    **labels: str,
) -> list[dict[str, Any]]:
    """Series of one GPU. + phases: from so many seconds ago on, other values"""
    count = int((start_s - end_s) // every) + 1
    times = [NOW - end_s - every * step for step in reversed(range(count))]
    values: dict[str, list[list[Any]]] = {}
    for time in times:
        now: dict[str, float] = {**TRAINS, **UNITS}
        for since, other in sorted((phases or {}).items(), reverse=True):
            if NOW - time <= since:
                now |= other
        for key, value in now.items():
            values.setdefault(GAUGES[key], []).append([time, str(value)])
    own = {"UUID": uuid, "gpu": "0", "node": "gpu1", "modelName": H100, **labels}
    return [{"metric": {"__name__": name, **own}, "values": rows} for name, rows in values.items()]


def counter(key: str, points: Mapping[float, float], **labels: str) -> dict[str, Any]:
    """A counter of nanoseconds. + points: seconds ago -> value"""
    rows = [[NOW - ago, str(value)] for ago, value in sorted(points.items(), reverse=True)]
    own = {"__name__": TIMES[key], "UUID": "GPU-a", "gpu": "0", "node": "gpu1", **labels}
    return {"metric": own, "values": rows}


def series(rows: list[dict[str, Any]]) -> list[Series]:
    return [
        Series(
            row["metric"]["__name__"],
            row["metric"],
            tuple((float(time), float(value)) for time, value in row["values"]),
        )
        for row in rows
    ]


def one(rows: list[dict[str, Any]], window_s: float = 900) -> DeviceProfile:
    ((device, samples),) = collect(series(rows)).items()
    return profile(device, samples, Span(NOW, window_s, 15), LIMITS, {})


def test_means_of_five_minutes() -> None:
    (samples,) = collect(series(scraped(phases={100: {"sm": 0.1}}))).values()
    found = samples.at(NOW, 15)
    assert found.values["sm"] == pytest.approx((13 * 0.85 + 7 * 0.1) / 20)
    assert found.samples == 1.0
    assert found.memory_ratio == pytest.approx(0.875)
    assert found.pcie_max == pytest.approx(16 * 985e6 * 4)


@pytest.mark.parametrize(
    ("points", "share"),
    [
        ({200: 0, 100: 10e9, 0: 10e9}, 0.05),
        ({200: 2e14, 0: 2e14 + 20e9}, 0.1),  # two days: above DCGM's blank of other fields
        ({200: 50e9, 100: 5e9, 0: 15e9}, 0.075),  # the driver was loaded anew
        ({200: 9.3e18, 100: 9.3e18}, None),
        ({100: 5e9}, None),
    ],
)
def test_counters_of_time(points: dict[float, float], share: float | None) -> None:
    (samples,) = collect(series([*scraped(), counter("hw_thermal", points)])).values()
    found = samples.at(NOW, 15).get("hw_thermal")
    assert found == (None if share is None else pytest.approx(share))


def test_the_class_of_most_of_the_window() -> None:
    found = one(scraped(phases={360: {**IDLE, **FREE}}))
    assert found.found.name == "compute_bound"
    assert found.shares["compute_bound"] + found.shares["idle"] + found.shares.get(
        "balanced", 0
    ) + found.shares.get("input_bound", 0) == pytest.approx(1)
    assert found.shares["idle"] > 0.1
    assert not one(scraped()).mixed


def test_holes_in_the_samples_are_no_class() -> None:
    whole = scraped()
    holed = [{**row, "values": row["values"][::2]} for row in whole]
    assert one(holed).found.name == "insufficient_data"
    assert not one(holed).known


def test_a_mig_instance_and_a_shared_gpu_are_told_as_such() -> None:
    instance = one(scraped(GPU_I_ID="3", GPU_I_PROFILE="1g.10gb"))
    assert instance.name == "GPU-a/3"
    assert instance.position is None
    assert any("MIG instance" in note for note in instance.notes)
    pods = [row for pod in ("a", "b") for row in scraped(namespace="ml", pod=pod)]
    assert any("shared by several pods" in note for note in one(pods).notes)


def test_the_roofline_of_a_known_model() -> None:
    found = position(means(sm_clock=990, sm_clock_max=1980), H100)
    assert found is not None
    assert found.compute == pytest.approx(0.5 * (0.55 * 989 + 0.1 * 67))
    assert found.memory == pytest.approx(0.4 * 3350)
    assert found.ridge == pytest.approx(989000 / 3350)
    assert str(found).endswith("(NVIDIA H100 data sheet, dense FP16)")
    assert position(means(), "NVIDIA GeForce RTX 4090") is None
    assert position(means(dram=None), H100) is None


@pytest.mark.parametrize(
    ("model", "sheet"),
    [
        ("NVIDIA H200", "NVIDIA H200"),
        ("NVIDIA H200 NVL", "NVIDIA H200 NVL"),
        ("NVIDIA A10", "NVIDIA A10"),
        ("NVIDIA A10G", None),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA L4", "NVIDIA L4"),
        ("NVIDIA L40", None),
        ("NVIDIA L40S", "NVIDIA L40S"),
    ],
)
def test_models_that_begin_alike(model: str, sheet: str | None) -> None:
    found = peak(model)
    assert (found.model if found else None) == sheet


class Fake:
    """Prometheus' HTTP API: series for range selectors, and answers by a part of the query."""

    def __init__(self, rows: list[dict[str, Any]], **vectors: list[dict[str, Any]]) -> None:
        self.rows, self.vectors = rows, vectors
        self.asked: list[str] = []

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        expression = dict(query or {})["query"]
        self.asked.append(expression)
        if expression.startswith("{__name__=~"):
            return self._said("matrix", self.rows)
        if expression == "vector(time())":
            return self._said("vector", [{"metric": {}, "value": [NOW, str(NOW)]}])
        for part, rows in self.vectors.items():
            if part in expression:
                return self._said("vector", rows)
        return self._said("vector", [])

    @staticmethod
    def _said(kind: str, rows: list[dict[str, Any]]) -> Any:
        return {"status": "success", "data": {"resultType": kind, "result": rows}}


def vector(value: float, **labels: str) -> list[dict[str, Any]]:
    return [{"metric": labels, "value": [NOW, str(value)]}]


def ask(fake: Fake, question: ProfileQuestion) -> Any:
    return json.loads(question.answer(Prometheus(fake, "")))


POD = ProfileQuestion("pod", "trainer-0", "ml")


def test_the_answer_for_a_pod() -> None:
    fake = Fake(scraped(namespace="ml", pod="trainer-0"))
    answer = ask(fake, POD)
    (gpu,) = answer["gpus"]
    assert (gpu["class"], gpu["node"], gpu["pods"]) == ("compute_bound", "gpu1", ["ml/trainer-0"])
    assert known(answer)
    lines = text(answer)
    for part in ("pod ml/trainer-0: 1 GPU, 15 minutes until", "bound by arithmetic", "roofline: up",
                 "SM active 0.85 >= 0.8  [NVIDIA", "what to try first"):  # fmt: skip
        assert part in lines


def test_a_pod_that_has_just_begun_is_judged_by_its_own_time() -> None:
    rows = scraped(start_s=420, namespace="ml", pod="trainer-0")
    assert ask(Fake(rows), POD)["gpus"][0]["class"] == "compute_bound"
    few = scraped(start_s=100, namespace="ml", pod="trainer-0")
    answer = ask(Fake(few), POD)
    assert answer["gpus"][0]["class"] == "insufficient_data"
    assert not known(answer)
    node = ProfileQuestion("node", "gpu1")
    assert ask(Fake(rows), node)["gpus"][0]["class"] == "insufficient_data"


def test_a_pod_that_has_ended_is_judged_until_its_end() -> None:
    rows = scraped(start_s=850, end_s=300, namespace="ml", pod="trainer-0")
    assert ask(Fake(rows), POD)["gpus"][0]["class"] == "compute_bound"


def test_a_job_is_its_pods() -> None:
    job = ProfileQuestion("job", "train", "ml")
    nobody = ask(Fake([]), job)
    assert nobody["reason"] == "kube-state-metrics knows no pod of job ml/train"
    fake = Fake(scraped(namespace="ml", pod="train.0-x"), kube_pod_owner=vector(1, pod="train.0-x"))
    assert ask(fake, job)["gpus"][0]["class"] == "compute_bound"
    assert any(r'pod=~"train\\.0\\-x"' in one for one in fake.asked)


def test_hosts_explain_what_waits() -> None:
    bursts: dict[float, dict[str, float]] = {
        since: {"engine": 0.9 if since % 60 else 0.05, "sm": 0.3, "tensor": 0.1}
        for since in range(30, 1230, 30)
    }
    rows = scraped(phases=bursts, namespace="ml", pod="trainer-0")
    alone = ask(Fake(rows), POD)["gpus"][0]
    assert (alone["class"], alone["confidence"]) == ("input_bound", "low")
    told = ask(Fake(rows, container_cpu_cfs=vector(0.6, node="gpu1")), POD)["gpus"][0]
    assert (told["class"], told["confidence"]) == ("input_bound", "high")


@pytest.mark.parametrize(
    ("question", "vectors", "said"),
    [
        (POD, {}, "names pod trainer-0, and it asked for no GPU"),
        (POD, {"kube_pod_container_resource": vector(2)}, "which asked for 2 GPUs"),
        (ProfileQuestion("node", "gpu9"), {}, "no sample of the last 15m is about node gpu9"),
    ],
)
def test_why_nothing_is_known(
    question: ProfileQuestion, vectors: dict[str, Any], said: str
) -> None:
    answer = ask(Fake([], **vectors), question)
    assert said in answer["reason"]
    assert not known(answer)
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
    monkeypatch.setattr(asking, "ask", lambda question, *_: ask(fake, question))
    runner = CliRunner()
    done = runner.invoke(app, ["profile", "pod", "trainer-0", "-n", "ml", "--url", "http://x"])
    assert done.exit_code == 0, done.output
    assert "bound by arithmetic" in done.output
    as_json = runner.invoke(app, ["profile", "gpu", "GPU-a", "--json", "--url", "http://x"])
    assert json.loads(as_json.output)["gpus"][0]["class"] == "compute_bound"
    monkeypatch.setattr(asking, "ask", lambda question, *_: ask(Fake([]), question))
    assert runner.invoke(app, ["profile", "node", "gpu1", "--url", "http://x"]).exit_code == 2
