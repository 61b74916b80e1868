"""docs/examples/applications: its metrics as others parse them, its logs, its manifests."""

from __future__ import annotations

import importlib
import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml
from prometheus_client.openmetrics import parser

from tests.documents import ROOT

FOLDER = ROOT / "docs/examples/applications"
UUIDS = ("GPU-00000000-0000-4000-8000-000000000001", "GPU-00000000-0000-4000-8000-000000000002")


@pytest.fixture(autouse=True)
def module_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules import each other as they lie: side by side."""
    monkeypatch.syspath_prepend(str(FOLDER))


def module(name: str) -> Any:
    return importlib.import_module(name)


def families(text: str) -> list[Any]:
    """The page as an independent parser reads it."""
    parse: Any = parser.text_string_to_metric_families
    return list(parse(text))


def samples(text: str) -> dict[str, float]:
    """`name{label="value"}` -> value."""
    return {
        sample.name + "".join(f"{{{key}={value}}}" for key, value in sample.labels.items()):
        sample.value
        for family in families(text) for sample in family.samples
    }  # fmt: skip


def got(port: int, path: str = "/metrics", body: bytes | None = None) -> tuple[str, str]:
    """Content type and body of an answer."""
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", body), timeout=20) as answer:
        return answer.headers.get("Content-Type", ""), answer.read().decode()


def test_the_page_is_openmetrics_with_its_content_type() -> None:
    metrics = module("telemetry").Metrics()
    tokens = metrics.counter("ml_tokens", 'Tokens, "all" of them\nand \\ more')
    tokens.add(3, phase="prompt", model='a "b"\\\n')
    tokens.add(0.5, phase="generation")
    busy = metrics.counter("ml_step_seconds", "Time", "seconds")
    busy.add(2)
    metrics.gauge("ml_loss", "Loss").set(float("nan"))
    server = metrics.serve(0)
    try:
        kind, text = got(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    by_name = {family.name: family for family in families(text)}
    assert by_name["ml_tokens"].type == "counter"
    assert by_name["ml_tokens"].documentation == 'Tokens, "all" of them\nand \\ more'
    assert by_name["ml_step_seconds"].unit == "seconds"
    [first] = [s for s in by_name["ml_tokens"].samples if s.labels["phase"] == "prompt"]
    assert (first.name, first.value) == ("ml_tokens_total", 3)
    assert first.labels["model"] == 'a "b"\\\n'
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("name", "unit"), [("ml_tokens_total", ""), ("ml tokens", ""), ("ml_step", "seconds")]
)
def test_a_name_that_openmetrics_does_not_have_is_refused(name: str, unit: str) -> None:
    with pytest.raises(ValueError, match="name"):
        module("telemetry").Metrics().counter(name, "x", unit)


def test_a_counter_only_rises_and_exists_once() -> None:
    metrics = module("telemetry").Metrics()
    counter = metrics.counter("ml_tokens", "x")
    with pytest.raises(ValueError, match="cannot fall"):
        counter.add(-1)
    with pytest.raises(ValueError, match="add to it"):
        counter.set(1)
    with pytest.raises(ValueError, match="exists"):
        metrics.gauge("ml_tokens", "x")


def test_training_counts_what_it_does_and_learns(caplog: pytest.LogCaptureFixture) -> None:
    metrics = module("telemetry").Metrics()
    caplog.set_level(logging.INFO)
    model = module("training").train(metrics, steps=400, size=16, pause_s=0)
    metric_samples = samples(metrics.text())
    assert metric_samples["ml_samples_total{phase=training}"] == 400 * 16
    assert metric_samples["ml_steps_total"] == 400
    assert metric_samples["ml_step_seconds_total"] > 0
    assert metric_samples["ml_loss"] < 0.01
    assert (model.slope, model.bias) == (pytest.approx(3, abs=0.1), pytest.approx(-1, abs=0.1))
    assert caplog.records[-1].message == "done"


class Slow:
    """A model that answers when it is let."""

    def __init__(self) -> None:
        self.let = threading.Semaphore(0)

    def __call__(self, prompt: list[str]) -> list[str]:
        self.let.acquire(timeout=20)
        if prompt == ["bad"]:
            raise RuntimeError("cannot")
        return prompt[::-1]


@pytest.fixture
def served() -> Iterator[tuple[int, Slow, Any]]:
    """A server's port, its model and its metrics."""
    metrics, model, serving = module("telemetry").Metrics(), Slow(), module("serving")
    server = serving.listen(serving.Engine(metrics, model), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], model, metrics
    server.shutdown()
    server.server_close()


def until_equal(metrics: Any, name: str, value: float) -> None:
    """Wait until a gauge has a value."""
    for _ in range(400):
        if samples(metrics.text())[name] == value:
            return
        threading.Event().wait(0.01)
    pytest.fail(f"{name} never is {value}: {samples(metrics.text())}")


def test_serving_counts_tokens_and_its_queue(served: tuple[int, Slow, Any]) -> None:
    port, model, metrics = served
    answers: list[str] = []

    def submit(prompt: bytes) -> None:
        answers.append(got(port, "/generate", prompt)[1])

    asking = [threading.Thread(target=submit, args=(b"one two three",)) for _ in range(3)]
    for thread in asking:
        thread.start()
    until_equal(metrics, "ml_requests_waiting", 2)
    assert samples(metrics.text())["ml_requests_running"] == 1
    for _ in asking:
        model.let.release()
    for thread in asking:
        thread.join(20)
    assert answers == ["three two one\n"] * 3
    metric_samples = samples(metrics.text())
    assert metric_samples["ml_tokens_total{phase=prompt}"] == 9
    assert metric_samples["ml_tokens_total{phase=generation}"] == 9
    assert metric_samples["ml_requests_total{outcome=success}"] == 3
    assert metric_samples["ml_requests_waiting"] == metric_samples["ml_requests_running"] == 0


def test_a_failed_request_is_counted_and_makes_no_tokens(served: tuple[int, Slow, Any]) -> None:
    port, model, metrics = served
    model.let.release()
    with pytest.raises(Exception, match="500"):
        got(port, "/generate", b"bad")
    metric_samples = samples(metrics.text())
    assert metric_samples["ml_requests_total{outcome=error}"] == 1
    assert metric_samples["ml_tokens_total{phase=prompt}"] == 0


def test_a_log_line_is_one_json_object_with_its_place() -> None:
    place = {"node": "gpu1", "namespace": "ml", "pod": "train-0", "gpu_uuid": ",".join(UUIDS)}
    record = logging.makeLogRecord(
        {"name": "training", "levelname": "WARNING", "msg": "slow %s", "args": ("step",),
         "created": 1763900000.5, "step": 7, "node": "made up"}
    )  # fmt: skip
    text = module("telemetry").JsonLines(place).format(record)
    assert "\n" not in text
    assert json.loads(text) == {
        "time": "2025-11-23T12:13:20.500Z", "level": "warning", "logger": "training",
        "message": "slow step", "step": 7, **place,
    }  # fmt: skip


def test_an_exception_stays_in_its_line() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    text = module("telemetry").JsonLines({}).format(record)
    assert "\n" not in text
    assert "ValueError: no" in json.loads(text)["exception"]


GPU_LIST = f"""\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUIDS[0]})
  MIG 1g.10gb     Device  0: (UUID: MIG-11111111-1111-5111-8111-111111111111)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: {UUIDS[1]})
"""


def test_the_place_is_what_is_known_and_nothing_else(tmp_path: Path) -> None:
    telemetry = module("telemetry")
    smi = tmp_path / "smi"
    smi.write_text(f"#!/bin/sh\ncat <<'EOF'\n{GPU_LIST}EOF\n")
    smi.chmod(0o755)
    assert telemetry.gpu_uuids((str(smi), "-L")) == list(UUIDS)
    assert telemetry.gpu_uuids((str(tmp_path / "none"), "-L")) == []
    assert telemetry.gpu_uuids(("false",)) == []
    place = telemetry.place({"NODE_NAME": "gpu1", "POD_NAME": ""})
    assert place == {"node": "gpu1"}


def test_the_library_free_example_needs_no_library() -> None:
    examples = {path.stem for path in FOLDER.glob("*.py")}
    for path in FOLDER.glob("*.py"):
        roots = re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert set(roots) <= sys.stdlib_module_names | examples, path.name


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


@pytest.mark.parametrize("name", ["training.yaml", "serving.yaml"])
def test_pods_offer_what_the_pod_monitor_looks_for(name: str) -> None:
    [monitor] = objects("podmonitor.yaml")
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    [workload] = [item for item in objects(name) if item["kind"] in ("Deployment", "Job")]
    template = workload["spec"]["template"]
    match_labels = monitor["spec"]["selector"]["matchLabels"]
    assert match_labels.items() <= template["metadata"]["labels"].items()
    [container] = template["spec"]["containers"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]}
    fields = {item["name"]: item["valueFrom"]["fieldRef"]["fieldPath"] for item in container["env"]}
    assert set(module("telemetry").PLACE.values()) == fields.keys()
    assert container["resources"]["limits"]["nvidia.com/gpu"] >= 1


def test_programs_say_what_they_take() -> None:
    for name in ("training.py", "serving.py"):
        result = subprocess.run(
            [sys.executable, str(FOLDER / name), "--help"], capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        assert "port" in result.stdout
