"""An API server that cannot list a kind yet, since its definition has just been applied."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from deploys.lib import answers as answers_module
from deploys.lib import managed_objects, waiting
from gpuboot.kubernetes.managed_objects import ManagedObjects

BUSY = ManagedObjects("podmonitors: storage is (re)initializing")


@pytest.mark.parametrize(("executing", "asked"), [(True, 3), (False, 1)])
def test_it_is_waited_for_while_a_run_executes(
    monkeypatch: pytest.MonkeyPatch, executing: bool, asked: int
) -> None:
    answers = [BUSY, BUSY, ManagedObjects()]
    given: list[ManagedObjects] = []

    def read(*_: object, **__: object) -> ManagedObjects:
        given.append(answers[len(given)])
        return given[-1]

    monkeypatch.setattr(managed_objects, "read", read)
    monkeypatch.setattr(managed_objects, "executing", lambda: executing)
    monkeypatch.setattr(managed_objects, "host", SimpleNamespace(name="cp1", print_prefix=""))
    monkeypatch.setattr(waiting, "POLL_S", 0.0)
    monkeypatch.setattr(answers_module, "forget_cluster", lambda: None)
    assert managed_objects.managed_objects().error == given[-1].error
    assert len(given) == asked
