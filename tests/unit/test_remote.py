"""Commands on other hosts: whose turn it is then, and afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.host import Host
from pyinfra.context import ctx_host
from pyinfra.context import host as current_host

from deploys.engine import answers, privilege, remote


def machine(name: str) -> Host:
    return cast(Host, SimpleNamespace(name=name, connected=True))


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """The host whose operation runs; every command answers with the host that is current then."""

    def answer(*_: object, **__: object) -> Any:
        return SimpleNamespace(ok=True, stdout=current_host.name, output="")

    monkeypatch.setattr(remote, "run_command", answer)
    monkeypatch.setattr(privilege, "become_arguments", lambda _: {})
    monkeypatch.setattr(answers, "forget", lambda _: None)
    own_host = machine("cp1")
    ctx_host.set(own_host)  # type: ignore[no-untyped-call]
    yield own_host
    ctx_host.reset()


def test_a_command_runs_as_the_other_host(turn: Host) -> None:
    assert remote.run(machine("gpu1"), "true") == "gpu1"
    assert ctx_host.get() is turn  # type: ignore[no-untyped-call]


def test_the_current_host_may_be_named_by_what_stands_for_it(turn: Host) -> None:
    assert remote.run(current_host, "true") == "cp1"
    assert ctx_host.get() is turn  # type: ignore[no-untyped-call]


def test_it_is_the_first_one_s_turn_again_after_an_error(
    turn: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("connection lost")

    monkeypatch.setattr(remote, "run_command", broken)
    with pytest.raises(OSError, match="lost"):
        remote.run(machine("gpu1"), "true")
    assert ctx_host.get() is turn  # type: ignore[no-untyped-call]
