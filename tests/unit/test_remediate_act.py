"""`gpuboot remediate --act`: one controller at a time, what it tells, and who is asked before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from deploys.operations import remediate as operations
from deploys.operations.remediate import LEASE, SiteLock
from deploys.run.lock import LockError
from gpuboot.cli import app, runs
from gpuboot.kubernetes.repair import STEPS, report
from gpuboot.verify import lease
from tests.unit.repair_site import RESET_ASKED, Site, site

runner = CliRunner()
LEASE_PATH = f"{lease.LEASES}/{LEASE}"


def free() -> SiteLock:
    return SiteLock(lambda: None)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the operation tells while it runs."""
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(operations, "_tell", lines.append)
    return lines


def test_a_step_is_a_line_for_whoever_started_the_deploy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "steps"
    with path.open("w") as steps:
        monkeypatch.setenv(STEPS, str(steps.fileno()))
        operations._tell({"to": "drained"})
    assert path.read_text() == '{"to": "drained"}\n'


def act(made: Site, lock: SiteLock | None = None) -> report.Json:
    return operations.repaired(cast(Any, made), made.settings, made, lock or free())


def test_it_repairs_what_it_may_and_tells_each_step(told: list[dict[str, Any]]) -> None:
    made = site(confirm_s=0).fault("gpu1", RESET_ASKED)
    found = act(made)
    assert made.did == [("drain", "gpu1"), ("reset", "gpu1"), ("prove", "gpu1")]
    assert [one["to"] for one in told][-1] == "released"
    assert found["nodes"][0]["state"] == "released"
    assert made.leases == {}, "given back"


def test_with_nothing_to_do_nothing_is_written(told: list[dict[str, Any]]) -> None:
    made = site()
    asked: list[str] = []
    found = act(made, SiteLock(lambda: cast(Any, asked.append("the site's lock"))))
    assert found["nodes"] == []
    assert (told, made.writes) == ([], [])
    assert asked == [], "no run of a person's is kept waiting"


def test_only_one_controller_is_at_work(
    monkeypatch: pytest.MonkeyPatch, told: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(operations, "_PATIENCE_S", 0)
    made = site(confirm_s=0).fault("gpu1", RESET_ASKED)
    spec = {"holderIdentity": "root@admin-7", "renewTime": f"{made.now():%Y-%m-%dT%H:%M:%S.%fZ}",
            "acquireTime": "09:00"}  # fmt: skip
    made.leases[LEASE_PATH] = {"metadata": {"name": LEASE}, "spec": spec}
    found = act(made)
    assert "another gpuboot remediate --act, root@admin-7, has been running since" in found["error"]
    assert report.exit_code(found) == report.COULD_NOT_TELL
    assert (told, made.writes) == ([], [])


def test_who_loses_the_lease_stops(told: list[dict[str, Any]]) -> None:
    made = site(confirm_s=0).fault("gpu1", RESET_ASKED)
    drain = made.drain

    def slow(node: str) -> str:
        made.leases[LEASE_PATH]["spec"]["holderIdentity"] = "another"
        return drain(node)

    made.drain = slow  # type: ignore[method-assign]
    act(made)
    assert made.states()["gpu1"] == "draining"
    assert made.did == [("drain", "gpu1")]
    assert LEASE_PATH in made.leases, "the other's"


def test_a_run_that_changes_the_site_goes_first(told: list[dict[str, Any]]) -> None:
    tries: list[int] = []

    def taken() -> None:
        tries.append(1)
        raise LockError("[cp1] another run changes this site\n    remedy: wait")

    made = site(confirm_s=0).fault("gpu1", RESET_ASKED)
    found = act(made, SiteLock(taken))
    assert made.states()["gpu1"] == "confirmed"
    assert found["stopped"] == "[cp1] another run changes this site; wait"
    assert tries == [1]


def test_another_run_may_take_the_sites_lock_meanwhile() -> None:
    class Lock:
        def lost(self) -> bool:
            return True

    lock = SiteLock(lambda: cast(Any, Lock()))
    assert not lock.lost()
    assert lock.refused() == ""
    assert lock.lost()


def test_the_operation_leaves_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[dict[str, Any]]
) -> None:
    made = site(confirm_s=0).fault("gpu1", RESET_ASKED)

    class Host:
        def noop(self, text: str) -> None:
            """Nothing was changed."""

        def get_host(self, name: str) -> str:
            return name

    @contextmanager
    def clients(_: Any) -> Iterator[Site]:
        yield made

    @contextmanager
    def unlocked(_: Any) -> Iterator[SiteLock]:
        yield free()

    monkeypatch.setattr(operations, "executing", lambda: True)
    monkeypatch.setattr(operations, "cluster_clients", clients)
    monkeypatch.setattr(operations, "site_lock", unlocked)
    monkeypatch.setattr(operations, "Hands", lambda *_: made)
    monkeypatch.setattr(operations, "inventory", Host())
    monkeypatch.setattr(operations, "host", Host())
    path = tmp_path / "answer"
    commands = operations.acted._inner(
        made.settings, cast(Any, None), [], "cp1", str(path), cast(Any, None), lambda _: None
    )
    assert list(commands) == []
    assert json.loads(path.read_text())["nodes"][0]["state"] == "released"


FOUND: report.Json = {
    "schema": 1, "cluster": "c", "time": "", "gpu_nodes": 1, "error": "", "stale": "",
    "stopped": "", "breaker": "", "ignored": [],
    "nodes": [{"node": "gpu1", "state": None, "action": "reset", "gpus": [], "saw": "s",
               "would": ["reset it"], "why_not": []}],
}  # fmt: skip


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """The environments that deploys were started with."""
    environments: list[Mapping[str, str]] = []

    def run(inventory: str, deploy: str, more: Any = (), environment: Any = None, **_: Any) -> Any:
        environments.append(environment or {})
        return runs.Ended(0, json.dumps(FOUND), "")

    monkeypatch.setattr(runs, "pyinfra", run)
    return environments


ACT = {"GPUBOOT_ACT": "1"}


@pytest.mark.parametrize(
    ("options", "terminal", "answer", "environments", "code"),
    [
        ([], True, "", [{}], 1),
        (["--act", "-y"], False, "", [ACT], 1),
        (["--act"], True, "y\n", [{}, ACT], 1),
        (["--act"], True, "n\n", [{}], 2),
        (["--act"], False, "", [{}], 2),
        (["-y"], True, "", [], 2),
    ],
)
def test_a_person_is_asked_before(
    monkeypatch: pytest.MonkeyPatch, started: list[Mapping[str, str]], options: list[str],
    terminal: bool, answer: str, environments: list[Mapping[str, str]], code: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(runs, "is_terminal", lambda: terminal)
    done = runner.invoke(app, ["remediate", "i.py", *options], input=answer)
    assert done.exit_code == code, done.output
    assert started == environments


def test_for_programs_the_last_line_is_what_is_left(started: list[Mapping[str, str]]) -> None:
    done = runner.invoke(app, ["remediate", "i.py", "--act", "-y", "--json"])
    assert json.loads(done.stdout) == FOUND
    assert "1 GPU nodes, 1 to look at" in done.stderr


def test_nobody_is_asked_where_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, started: list[Mapping[str, str]]
) -> None:
    monkeypatch.setitem(FOUND, "nodes", [])
    done = runner.invoke(app, ["remediate", "i.py", "--act"])
    assert (done.exit_code, started) == (0, [{}])
