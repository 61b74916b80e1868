"""Series in even steps: what Prometheus answers over a window, what files hold, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from deploys.parts.query import operations as operations
from gpuboot.cli import ranges as command
from gpuboot.cli import runs
from gpuboot.cluster.api import ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.query import questions
from gpuboot.query.questions import Question
from gpuboot.usage.cost.cost_question import CostQuestion
from gpuboot.usage.ranges import RangeQuestion, answered, read
from gpuboot.usage.series import (
    History,
    SeriesError,
    StepSeries,
    Window,
    from_json,
    from_matrix,
    to_json,
    to_matrix,
)
from gpuboot.verify import http_reader
from gpuboot.verify.prometheus import Prometheus, PrometheusError

HOUR = 3600
START = 1_790_000_000 // HOUR * HOUR
DAY = Window(START, START + 24 * HOUR, HOUR)


class Endless:
    """A Prometheus in which each series is 1 at every step, and which takes only small queries.

    + max_times: more steps of one query are too many samples
    """

    def __init__(self, max_times: int = 1000, error: Exception | None = None) -> None:
        self.max_times = max_times
        self.error = error or PrometheusError("query processing would load too many samples")
        self.windows: list[tuple[int, int]] = []

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        if path.endswith("status/runtimeinfo"):
            return {"status": "success", "data": {"storageRetention": "15d"}}
        parameters = dict(query or {})
        first, end, step = (int(parameters[name]) for name in ("start", "end", "step"))
        times = range(first, end + 1, step)
        if len(times) > self.max_times:
            raise self.error
        self.windows.append((first, end))
        row = {"metric": {"node": "gpu1"}, "values": [[time, "1"] for time in times]}
        return {"status": "success", "data": {"resultType": "matrix", "result": [row]}}


def test_a_step_is_known_by_its_beginning() -> None:
    first = {"metric": {"node": "a"}, "values": [[START + HOUR, "2.5"], [START + 2 * HOUR, "NaN"]]}
    (series,) = from_matrix([first], DAY)
    assert series.values == {START: 2.5}
    assert to_matrix([series], DAY) == [
        {"metric": {"node": "a"}, "values": [[START + HOUR, "2.5"]]}
    ]


@pytest.mark.parametrize(
    "wrong_rows",
    [
        [{"metric": {}, "values": [[START, "1"]]}],  # ends with the step before the window
        [{"metric": {}, "values": [[START + 60, "1"]]}],
        [{"metric": {}, "values": [[START + HOUR, "many"]]}],
        [{"metric": {}}],
        ["text"],
    ],
)
def test_what_is_no_matrix_of_the_window_is_refused(wrong_rows: list[Any]) -> None:
    with pytest.raises(SeriesError):
        from_matrix(wrong_rows, DAY)


@pytest.mark.parametrize(
    ("start", "end", "step"), [(0, 0, 60), (0, 90, 60), (0, 60, 0), (60, 0, 60)]
)
def test_a_window_is_whole_steps(start: int, end: int, step: int) -> None:
    with pytest.raises(SeriesError):
        Window(start, end, step)


@pytest.mark.parametrize("max_steps", [1, 5, 24, 1000])
def test_pieces_cover_the_window_once(max_steps: int) -> None:
    steps = [time for piece in DAY.chunks(max_steps) for time in piece.steps]
    assert steps == list(DAY.steps)
    assert all(len(piece.steps) <= max_steps for piece in DAY.chunks(max_steps))


@pytest.mark.parametrize("max_steps", [1, 7, 24, 168])
def test_pieces_are_put_together(max_steps: int) -> None:
    fake = Endless()
    history = read(Prometheus(fake, ""), RangeQuestion({"up": "up"}, DAY, max_steps))
    (series,) = history.of("up")
    assert series == StepSeries({"node": "gpu1"}, dict.fromkeys(DAY.steps, 1.0))
    assert len(fake.windows) == -(-24 // max_steps)
    assert history.metadata == {"retention": "15d"}
    assert history.of("other") == ()


@pytest.mark.parametrize(
    "error",
    [
        None,
        ClusterError("GET: 422 too much", 422),
        ClusterError("GET: no answer within 20 s"),
    ],
)
def test_a_piece_that_is_too_much_is_halved(error: Exception | None) -> None:
    fake = Endless(max_times=5, error=error)
    history = read(Prometheus(fake, ""), RangeQuestion({"up": "up"}, DAY))
    assert set(history.of("up")[0].values) == set(DAY.steps)
    assert len(fake.windows) == 8


@pytest.mark.parametrize("error", [PrometheusError("parse error"), ClusterError("no way", 403)])
def test_other_errors_are_not_asked_again(error: Exception) -> None:
    with pytest.raises(type(error)):
        read(Prometheus(Endless(max_times=0, error=error), ""), RangeQuestion({"up": "up"}, DAY))
    with pytest.raises(PrometheusError, match="too many samples"):
        read(Prometheus(Endless(max_times=0), ""), RangeQuestion({"up": "up"}, DAY))


def test_questions_and_answers_travel_as_json() -> None:
    question = RangeQuestion({"up": "up"}, DAY, 7)
    assert questions.from_json(question.to_json()) == question
    series = (StepSeries({"node": "gpu1"}, {START: 1.5}), StepSeries({}, {START + HOUR: 0.0}))
    history = History(DAY, {"up": series, "none": ()}, {"retention": "15d"})
    assert from_json(to_json(history)) == history
    assert answered(to_json(history)) == history
    with pytest.raises(SeriesError, match="there is no cluster to ask"):
        answered(question.no_answer("there is no cluster to ask"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[]", "no file of recorded answers"),
        ("{}", '"format" is not'),
        ('{"format": "gpuboot-series/1"}', "no file of recorded answers"),
        ('{"format": "gpuboot-series/1", "window": {"start": 0}}', "no file of recorded answers"),
    ],
)
def test_files_that_are_no_recorded_answers(text: str, message: str) -> None:
    with pytest.raises(SeriesError, match=message):
        from_json(text)


def test_the_leader_is_asked_by_a_deploy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = RangeQuestion({"up": "up"}, DAY)
    history = History(DAY, {"up": (StepSeries({}, {START: 1.0}),)})
    calls: list[Any] = []
    answers = [to_json(history), question.no_answer("there is no cluster to ask"), ""]

    def pyinfra(*arguments: Any, **_: Any) -> runs.PyinfraResult:
        calls.append(arguments)
        return runs.PyinfraResult(0, answers[len(calls) - 1], "Permission denied")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    assert command.through_leader(question, "i.py", ["a=1"]) == history
    assert calls[0][:3] == ("i.py", "deploys/query.py", ["--data", "a=1"])
    assert questions.from_json(calls[0][3]["GPUBOOT_QUESTION"]) == question
    for message in ("Prometheus gives no answer: there is no cluster", "Permission denied"):
        with pytest.raises(typer.Exit):
            command.through_leader(question, "i.py")
        assert message in capsys.readouterr().err


def test_an_address_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    question = RangeQuestion({"up": "up"}, DAY)
    with pytest.raises(typer.Exit):
        command.at_address(question, "prometheus:9090", None, None)
    monkeypatch.setattr(http_reader, "HttpReader", lambda *_: Endless())
    assert len(command.at_address(question, "http://p", None, None).of("up")) == 1


class Leader(Endless):
    """The same behind the API server's proxy."""

    def service(self, namespace: str, name: str, port: int | str) -> str:
        return f"/{namespace}/{name}:{port}"


@pytest.mark.parametrize("way", ["answers", "no cluster", "forgotten"])
def test_the_operation_leaves_answers_or_the_reason_for_none(
    way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def clients(_: object) -> Iterator[Leader]:
        if way == "no cluster":
            raise ClusterError("there is no cluster to ask")
        yield Leader()

    for name, stand_in in (
        ("executing", lambda: True),
        ("cluster_clients", clients),
        ("inventory", SimpleNamespace(get_host=lambda name: name)),
        ("host", SimpleNamespace(noop=lambda text: None)),
    ):
        monkeypatch.setattr(operations, name, stand_in)
    settings = parse_settings({"cost": {"gpu_hour": {"*": 2}}, "monitoring": {"retention": "15d"}})
    path = tmp_path / "answer"
    question: Question = RangeQuestion({"up": "up"}, DAY)
    if way == "forgotten":
        question = CostQuestion("2026-01-01", "2026-01-02", "", START)
    assert list(operations.answered._inner(question, settings, "cp1", str(path))) == []
    if way == "answers":
        history = answered(path.read_text())
        assert set(history.of("up")[0].values) == set(DAY.steps)
        assert history.metadata["cost"]["gpu_hour"] == {"*": 2.0}
        return
    message = "Prometheus keeps 15d" if way == "forgotten" else "there is no cluster to ask"
    with pytest.raises(SeriesError, match=message):
        answered(path.read_text())
