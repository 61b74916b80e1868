"""Waiting ends when it is done, failed or late, and tells what changed on the way."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from deploys.lib import waiting
from deploys.lib.commands import failure
from gpuboot.kubernetes.readiness import Progress

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
    assert end.done
    assert [record.message for record in caplog.records] == ["[cp1] waiting: 0 of 2 (0 s)"]


def test_it_ends_at_once_when_hopeless() -> None:
    looks = iter([Progress(False, "gone", failed=True)])
    end = waiting.wait_until(HOST, lambda: next(looks), 60)
    assert waiting.unfinished(end, 60) == "not done: gone"
    assert failure("gone", "start again") == "gone\n    remedy: start again"


def test_it_ends_when_late() -> None:
    end = waiting.wait_until(HOST, lambda: Progress(False, "0 of 2"), 0)
    assert not end.done
    assert waiting.unfinished(end, 0) == "not done after 0 s: 0 of 2"
