"""What a run shows of pyinfra's log, and its last lines."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from deploys.run.screen import Screen, command
from gpuboot.verify.report.run import run_html, summary, verdict


def record(text: str, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("pyinfra", level, __file__, 1, text, (), None)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A screen in the middle of an operation, which keeps what it says in `said`."""
    current = Screen()
    messages: list[str] = []
    monkeypatch.setattr("deploys.run.screen._say", messages.append)
    current.messages = messages  # type: ignore[attr-defined]
    current.header = "Base | Install"
    return current


@pytest.mark.parametrize(
    "line",
    [
        "[\x1b[1mcp1\x1b[0m]  No changes",
        "[cp1] Skipped",
        "[cp1] No changes on retry 1",
        "[cp1] Connected",
        "--> Starting operation: Base | Install",
        "--> Results:",
        "--> Disconnecting from hosts...",
    ],
)
def test_lines_that_tell_nothing_are_left_out(screen: Screen, line: str) -> None:
    assert not screen.filter(record(line))
    assert screen.header, "its operation stays unnamed"


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("[cp1] Success", logging.INFO),
        ("[cp1] waiting: 0 of 1 nodes (1 s)", logging.INFO),
        ("[cp1] Error: executed 0 commands", logging.ERROR),
        ("[cp1] No changes", logging.WARNING),
    ],
)
def test_what_happens_is_shown_below_the_name_of_its_operation(
    screen: Screen, line: str, level: int
) -> None:
    assert screen.filter(record(line, level))
    assert screen.messages == ["--> Base | Install"]  # type: ignore[attr-defined]
    assert screen.happened is ("Success" in line)
    screen.filter(record("[cp1] more"))
    assert len(screen.messages) == 1, "named once"  # type: ignore[attr-defined]


def test_the_command_to_go_on_with_holds_no_value_that_may_be_secret() -> None:
    options: dict[str, Any] = {
        "inventory": "inventories/my site.py",
        "operations": ("deploys/site.py",),
        "limit": ("gpu*",),
        "exclude": (),
        "group_data": (),
        "data": ("ssh_password=very-secret",),
        "yes": True,
    }
    assert command(options) == (
        "pyinfra 'inventories/my site.py' deploys/site.py --limit 'gpu*' --data ssh_password=... -y"
    )


def host(**fields: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "changed": [],
        "failed": [],
        "errors": [],
        "retries": 0,
        "commands": 0,
        "seconds": 0.0,
        "not_tried": [],
    }
    return {**record, **fields}


INSTALL = {"phase": "Base", "name": "Install", "seconds": 1.0, "hosts": {}, "commands": {}}


def run(hosts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "cluster": "prod",
        "started": "2026-11-22T10:00:00Z",
        "seconds": 41.2,
        "exit": 1,
        "phases": [{"name": "Base", "operations": 2, "seconds": 1.0}],
        "hosts": hosts,
        "operations": [{**INSTALL, "changed": {}}],
        "spans": [],
    }
    return {**record, **fields}


def test_the_verdict_says_what_failed_why_and_how_far_the_run_came() -> None:
    error = {
        "operation": "Base | Install",
        "message": "gpuboot: no such version\n  of it; remedy: name another\n  one",
    }
    hosts = {
        "cp1": host(
            failed=["Base | Install"], errors=[error], not_tried=["Base | More", "Helm | X"]
        ),
        "gpu1": host(changed=["Base | Install"]),
        "gpu2": host(),
    }
    assert list(verdict(run(hosts), "pyinfra a b")) == [
        "failed on cp1: Base | Install",
        "    cause:   no such version",
        "             of it",
        "    remedy:  name another",
        "             one",
        "not tried on cp1: the rest of Base, Helm",
        "changed by this run before it ended: gpu1 (1 operation)",
        "untouched: gpu2",
        "go on with: pyinfra a b",
    ]


def test_every_failure_has_a_remedy_and_an_interrupted_run_is_called_one() -> None:
    silent = {"operation": "Base | Install", "message": ""}
    lines = list(verdict(run({"cp1": host(failed=["x"], errors=[silent])})))
    assert lines[1] == "    cause:   it said nothing; the run's output tells more"
    assert lines[2].startswith("    remedy:  fix what it says")
    assert lines[-1] == "changed by this run before it ended: nothing"
    no_operation = run({"cp1": host()}, operations=[])
    assert next(verdict(no_operation)).startswith("the run was interrupted;")
    [first, *_] = verdict(run({"cp1": host()}, operations=[INSTALL]))
    assert first.startswith("the run was interrupted during Base | Install;")


def test_a_run_that_ends_well_is_one_line() -> None:
    quick = {**run({"cp1": host()}), "seconds": 6.4}
    assert summary(quick) == "done in 6 s: nothing had to be changed"
    long = "done in 41 s: nothing had to be changed (most of it: Base 1.0 s)"
    assert summary(run({"cp1": host()})) == long
    changed = run({"cp1": host(changed=["a", "b"]), "gpu1": host(changed=["a"])})
    assert summary(changed) == "done in 41 s: 2 operations changed something on cp1, gpu1"


def test_the_page_of_a_run_has_its_changes() -> None:
    recorded = {
        "changes": [{"subject": "package kubelet", "field": "version", "old": "1", "new": "2"}],
        "effects": [],
        "unknown": [],
    }
    operation = {**INSTALL, "changed": {"cp1": recorded}}
    run_record = run({"cp1": host(changed=["Base | Install"])}, operations=[operation], exit=0)
    assert "~ package kubelet: version 1 → 2" in run_html(run_record, proof=False)
