"""Waiting ends when it is done, failed or late, and tells what changed on the way."""

import logging
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from deploys.engine import waiting
from deploys.engine.commands import failure
from gpuboot.cluster.news import News
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import Stuck

HOST: Any = SimpleNamespace(print_prefix="[cp1] ")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_S", 0.0)
    # what pyinfra's command line does to its logger must not hide the records from caplog
    monkeypatch.setattr(logging.getLogger("pyinfra"), "propagate", True)


def test_it_ends_when_done_and_tells_each_step_once(caplog: pytest.LogCaptureFixture) -> None:
    looks = iter([Progress(False, "0 of 2"), Progress(False, "0 of 2"), Progress(True, "2 of 2")])
    with caplog.at_level(logging.INFO, logger="pyinfra"):
        end = waiting.wait_until(HOST, lambda: next(looks), 60)
    assert end.complete
    assert [record.message for record in caplog.records] == ["[cp1] waiting: 0 of 2 (0 s)"]


def test_it_ends_at_once_when_hopeless() -> None:
    looks = iter([Progress(False, "gone", failed=True)])
    end = waiting.wait_until(HOST, lambda: next(looks), 60)
    assert waiting.unfinished(end, 60, "")[0] == "not done: gone"
    assert failure("gone", "start again") == "gone\n    remedy: start again"


def test_it_ends_when_late() -> None:
    end = waiting.wait_until(HOST, lambda: Progress(False, "0 of 2"), 0)
    assert not end.complete
    assert waiting.unfinished(end, 0, "")[0] == "not done after 0 s: 0 of 2"


def test_seconds_that_pass_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    texts = [
        *("its kubelet has not reported for 17 s", "its kubelet has not reported for 18 s"),
        *("back-off 10s restarting", "back-off 1m20s restarting", "0 of 3 nodes", "1 of 3 nodes"),
    ]
    looks = iter([*(Progress(False, text) for text in texts), Progress(True, "all")])
    with caplog.at_level(logging.INFO, logger="pyinfra"):
        waiting.wait_until(HOST, lambda: next(looks), 60)
    messages = [record.message.removeprefix("[cp1] waiting: ") for record in caplog.records]
    assert messages == [f"{texts[number]} (0 s)" for number in (0, 2, 4, 5)]


def test_the_same_is_told_again_after_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "News", partial(News, repeat_s=0.0))
    looks = iter([Progress(False, "0 of 2"), Progress(False, "0 of 2"), Progress(True, "2 of 2")])
    with caplog.at_level(logging.INFO, logger="pyinfra"):
        waiting.wait_until(HOST, lambda: next(looks), 60)
    assert len(caplog.records) == 2


def test_it_ends_where_nothing_more_gets_ready() -> None:
    reason = Stuck("a/web", "exceeded quota", 0.0, "give it more")
    look = Progress(False, "0 of 2", stuck=(reason, replace(reason, subject="b", after_s=99.0)))
    end = waiting.wait_until(HOST, lambda: look, 60)
    assert end.failed
    assert end.stuck == (reason,)
    assert waiting.unfinished(end, 60, "")[0] == (
        "not done: after 0 s nothing more gets ready: a/web: exceeded quota"
    )
