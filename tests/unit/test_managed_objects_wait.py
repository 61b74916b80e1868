"""An API server that cannot list a kind yet, since its definition has just been applied."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from deploys.engine import answers as answers_module
from deploys.engine import waiting
from deploys.parts.cluster import listed_objects as managed_objects
from gpuboot.cluster.managed_objects import ManagedObjects

BUSY = ManagedObjects("podmonitors: storage is (re)initializing")


@pytest.mark.parametrize(("executing", "expected_calls"), [(True, 3), (False, 1)])
def test_it_is_waited_for_while_a_run_executes(
    monkeypatch: pytest.MonkeyPatch, executing: bool, expected_calls: int
) -> None:
    answers = [BUSY, BUSY, ManagedObjects()]
    received: list[ManagedObjects] = []

    def read(*_: object, **__: object) -> ManagedObjects:
        received.append(answers[len(received)])
        return received[-1]

    monkeypatch.setattr(managed_objects, "read", read)
    monkeypatch.setattr(managed_objects, "executing", lambda: executing)
    monkeypatch.setattr(managed_objects, "host", SimpleNamespace(name="cp1", print_prefix=""))
    monkeypatch.setattr(waiting, "POLL_S", 0.0)
    monkeypatch.setattr(answers_module, "forget_cluster", lambda: None)
    assert managed_objects.managed_objects().error == received[-1].error
    assert len(received) == expected_calls
