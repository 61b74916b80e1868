"""`gpuboot remediate --act`: one controller at a time, what it tells, and who is asked before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from deploys.parts.repair import operations as operations
from deploys.parts.repair.operations import LEASE, SiteLock
from deploys.run.lock import LockError
from gpuboot.cli import app, runs
from gpuboot.repair import STEPS, repair_report
from gpuboot.verify import lease
from tests.unit.repair_site import RECOVERY_RESET, Site, site

runner = CliRunner()
LEASE_PATH = f"{lease.LEASES}/{LEASE}"


def free() -> SiteLock:
    return SiteLock(lambda: None)


@pytest.fixture
def progress_lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the operation tells while it runs."""
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(operations, "_print_step", lines.append)
    return lines


def test_a_step_is_a_line_for_whoever_started_the_deploy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "steps"
    with path.open("w") as steps:
        monkeypatch.setenv(STEPS, str(steps.fileno()))
        operations._print_step({"to": "drained"})
    assert path.read_text() == '{"to": "drained"}\n'


def act(fake_site: Site, lock: SiteLock | None = None) -> repair_report.Json:
    return operations.repaired(cast(Any, fake_site), fake_site.settings, fake_site, lock or free())


def test_it_repairs_what_it_may_and_tells_each_step(progress_lines: list[dict[str, Any]]) -> None:
    fake_site = site(confirm_s=0).fault("gpu1", RECOVERY_RESET)
    answer = act(fake_site)
    assert fake_site.did == [("drain", "gpu1"), ("reset", "gpu1"), ("prove", "gpu1")]
    assert [transition["to"] for transition in progress_lines][-1] == "released"
    assert answer["nodes"][0]["state"] == "released"
    assert fake_site.leases == {}, "given back"


def test_with_nothing_to_do_nothing_is_written(progress_lines: list[dict[str, Any]]) -> None:
    fake_site = site()
    lock_requests: list[str] = []
    answer = act(fake_site, SiteLock(lambda: cast(Any, lock_requests.append("the site's lock"))))
    assert answer["nodes"] == []
    assert (progress_lines, fake_site.writes) == ([], [])
    assert lock_requests == [], "no run of a person's is kept waiting"


def test_only_one_controller_is_at_work(
    monkeypatch: pytest.MonkeyPatch, progress_lines: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(operations, "_PATIENCE_S", 0)
    fake_site = site(confirm_s=0).fault("gpu1", RECOVERY_RESET)
    spec = {
        "holderIdentity": "root@admin-7",
        "renewTime": f"{fake_site.now():%Y-%m-%dT%H:%M:%S.%fZ}",
        "acquireTime": "09:00",
    }
    fake_site.leases[LEASE_PATH] = {"metadata": {"name": LEASE}, "spec": spec}
    answer = act(fake_site)
    assert (
        "another gpuboot remediate --act, root@admin-7, has been running since" in answer["error"]
    )
    assert repair_report.exit_code(answer) == repair_report.COULD_NOT_TELL
    assert (progress_lines, fake_site.writes) == ([], [])


def test_who_loses_the_lease_stops(progress_lines: list[dict[str, Any]]) -> None:
    fake_site = site(confirm_s=0).fault("gpu1", RECOVERY_RESET)
    drain = fake_site.drain

    def slow(node: str) -> str:
        fake_site.leases[LEASE_PATH]["spec"]["holderIdentity"] = "another"
        return drain(node)

    fake_site.drain = slow  # type: ignore[method-assign]
    act(fake_site)
    assert fake_site.states()["gpu1"] == "draining"
    assert fake_site.did == [("drain", "gpu1")]
    assert LEASE_PATH in fake_site.leases, "the other's"


def test_a_run_that_changes_the_site_goes_first(progress_lines: list[dict[str, Any]]) -> None:
    tries: list[int] = []

    def refuse_lock() -> None:
        tries.append(1)
        raise LockError("[cp1] another run changes this site\n    remedy: wait")

    fake_site = site(confirm_s=0).fault("gpu1", RECOVERY_RESET)
    answer = act(fake_site, SiteLock(refuse_lock))
    assert fake_site.states()["gpu1"] == "confirmed"
    assert answer["stopped"] == "[cp1] another run changes this site; wait"
    assert tries == [1]


def test_another_run_may_take_the_sites_lock_meanwhile() -> None:
    class Lock:
        def is_lost(self) -> bool:
            return True

    lock = SiteLock(lambda: cast(Any, Lock()))
    assert not lock.is_lost()
    assert lock.refusal() == ""
    assert lock.is_lost()


def test_the_operation_leaves_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, progress_lines: list[dict[str, Any]]
) -> None:
    fake_site = site(confirm_s=0).fault("gpu1", RECOVERY_RESET)

    class Host:
        def noop(self, text: str) -> None:
            """Nothing was changed."""

        def get_host(self, name: str) -> str:
            return name

    @contextmanager
    def clients(_: Any) -> Iterator[Site]:
        yield fake_site

    @contextmanager
    def unlocked(_: Any) -> Iterator[SiteLock]:
        yield free()

    monkeypatch.setattr(operations, "executing", lambda: True)
    monkeypatch.setattr(operations, "cluster_clients", clients)
    monkeypatch.setattr(operations, "site_lock", unlocked)
    monkeypatch.setattr(operations, "Hands", lambda *_: fake_site)
    monkeypatch.setattr(operations, "inventory", Host())
    monkeypatch.setattr(operations, "host", Host())
    path = tmp_path / "answer"
    commands = operations.acted._inner(
        fake_site.settings, cast(Any, None), [], "cp1", str(path), cast(Any, None), lambda _: None
    )
    assert list(commands) == []
    assert json.loads(path.read_text())["nodes"][0]["state"] == "released"


REPORT: repair_report.Json = {
    "schema": 1, "cluster": "c", "time": "", "gpu_nodes": 1, "error": "", "stale": "",
    "stopped": "", "breaker": "", "ignored": [],
    "nodes": [{"node": "gpu1", "state": None, "action": "reset", "gpus": [], "saw": "s",
               "would": ["reset it"], "why_not": []}],
}  # fmt: skip


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """The environments that deploys were started with."""
    environments: list[Mapping[str, str]] = []

    def run(
        inventory: str, deploy: str, options: Any = (), environment: Any = None, **_: Any
    ) -> Any:
        environments.append(environment or {})
        return runs.PyinfraResult(0, json.dumps(REPORT), "")

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
    result = runner.invoke(app, ["remediate", "i.py", *options], input=answer)
    assert result.exit_code == code, result.output
    assert started == environments


def test_for_programs_the_last_line_is_what_is_left(started: list[Mapping[str, str]]) -> None:
    result = runner.invoke(app, ["remediate", "i.py", "--act", "-y", "--json"])
    assert json.loads(result.stdout) == REPORT
    assert "1 GPU nodes, 1 to look at" in result.stderr


def test_nobody_is_asked_where_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, started: list[Mapping[str, str]]
) -> None:
    monkeypatch.setitem(REPORT, "nodes", [])
    result = runner.invoke(app, ["remediate", "i.py", "--act"])
    assert (result.exit_code, started) == (0, [{}])
