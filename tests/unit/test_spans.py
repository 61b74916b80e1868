"""Spans, what is counted in them, and which of them a command belongs to."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.context import ctx_host

from deploys.engine import spans

clock = [0.0]  # seconds


@pytest.fixture(autouse=True)
def _reset_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("recorded", "_open"):
        monkeypatch.setattr(spans, name, [])
    monkeypatch.setattr(spans, "busy", defaultdict(float))
    for name in ("commands", "files"):
        monkeypatch.setattr(spans, name, Counter())
    monkeypatch.setattr(spans, "time", SimpleNamespace(monotonic=lambda: clock[0]))


class Connector:
    """Copies a file by a command, as pyinfra's connectors do under sudo."""

    def run_shell_command(self, command: str) -> str:
        if command == "fail":
            raise OSError("gone")
        clock[0] += 1
        return command

    def put_file(self) -> str:
        return self.run_shell_command("cp")

    def get_file(self) -> None: ...


def make_host(name: str, executing: bool = True) -> Any:
    fake_host: Any = SimpleNamespace(
        name=name, connector=Connector(), state=SimpleNamespace(is_executing=executing)
    )
    spans.count_commands(fake_host)
    return fake_host


def test_a_command_belongs_to_the_innermost_span_that_concerns_its_host() -> None:
    first_host, two = make_host("one"), make_host("two")
    with spans.span("compare") as outer, spans.span("compare", "one") as inner:
        assert first_host.connector.run_shell_command("a") == "a"
        two.connector.run_shell_command("b")
    first_host.connector.run_shell_command("outside of any span")
    assert (dict(outer.commands), dict(inner.commands)) == ({"two": 1}, {"one": 1})
    assert spans.busy["one"] == 2
    assert dict(spans.commands) == {"one": 2, "two": 1}  # one of them in no span


def test_commands_of_a_copy_are_counted_beside_the_copy() -> None:
    host = make_host("one")
    spans.count_commands(host)  # again, as a run does
    with spans.span("a") as item:
        host.connector.put_file()
    assert (item.files["one"], item.commands["one"]) == (1, 1)


def test_a_command_that_fails_is_counted_and_ends() -> None:
    host = make_host("one")
    with spans.span("a") as item, pytest.raises(OSError, match="gone"):
        host.connector.run_shell_command("fail")
    assert item.commands["one"] == 1
    clock[0] += 10  # nothing is running
    host.connector.run_shell_command("a")
    assert spans.busy["one"] == 1


def test_a_span_within_an_operation_knows_it() -> None:
    operation = spans.begin("Install", operation="hash")
    with ctx_host.use(make_host("one")), spans.waiting("0 of 2 nodes Ready"):
        pass
    spans.end(operation)
    with spans.span("afterwards"):
        pass
    waited = spans.recorded[1]
    assert (waited.name, waited.host, waited.operation, waited.wait) == (
        "0 of 2 nodes Ready", "one", "hash", True,
    )  # fmt: skip
    assert spans.recorded[2].operation == ""


def test_nothing_is_a_wait_while_a_run_is_prepared() -> None:
    with ctx_host.use(make_host("one", executing=False)), spans.waiting("nodes"):
        pass
    assert spans.recorded == []


def test_a_span_ends_when_its_block_fails() -> None:
    with pytest.raises(ValueError, match="no"), spans.span("a"):
        raise ValueError("no")
    assert spans.recorded[0].ended_at is not None
    assert spans._open == []


def test_the_process_began_before_this_module_was_read() -> None:
    assert time.monotonic() > spans.ORIGIN
