"""Two runs at once, through the real command line: the second stops before it touches anything."""

from __future__ import annotations

import fcntl
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuboot.hosts.run_lock import Holder
from tests.plan.test_changes import call

ALICE = Holder("1", "alice@laptop", "/home/alice/site", "pyinfra prod.py deploys/site.py -y")
SITE = ["pyinfra", "tests/plan/inventories/locked.py", "deploys/site.py"]
OTHER_RUN = "another run changes this site: alice@laptop, for "


class Site:
    """The folder of its lock, and what its hosts were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, lock_lines: list[str] | None = None) -> Any:
        """A run that writes a file on every host, which fails on the leader."""
        proxy = {"proxy": {"http": "http://proxy.example:3128"}}
        changed = {} if "--unchanged" in arguments else proxy
        return call(
            [*SITE, *(item for item in arguments if item != "--unchanged")],
            {**changed, "verify": {"reports": str(self.folder / "reports")}},
            PLAN_FAILS="95gpuboot.gpu",
            PLAN_COMMANDS=str(self.folder / "commands.json"),
            PLAN_LOCK=str(self.folder),
            PLAN_LOCK_TOLD=json.dumps(lock_lines or []),
        )

    @property
    def command_count(self) -> int:
        """How many commands the leader was sent."""
        return len(json.loads((self.folder / "commands.json").read_text())["@fake/cp1"])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "run.lock").write_text(ALICE.record() + "\n")
    return Site(tmp_path)


def test_a_run_stops_where_another_one_holds_the_lock(site: Site) -> None:
    with (site.folder / "run.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        dry = site.run("--dry")
        commands = site.command_count
        result = site.run("-y")
    assert result.returncode == 1
    assert "1 problem; nothing was changed" in result.stderr
    assert f"[@fake/cp1] {OTHER_RUN}" in result.stderr
    assert "in /home/alice/site: pyinfra prod.py deploys/site.py -y" in result.stderr
    assert "remedy: wait until it has ended" in result.stderr
    assert dry.returncode == 0, dry.stderr
    assert site.command_count <= commands
    assert not (site.folder / "reports").exists()


def test_a_run_that_waits_for_nothing_stops_as_soon_as_it_has_read_the_hosts(site: Site) -> None:
    lock_lines = ["run_lock_age\t130", f"run_lock\t{ALICE.record()}"]
    result = site.run("-y", lock_lines=lock_lines)
    assert result.returncode == 1
    assert f"{OTHER_RUN}2 min" in result.stderr
    assert site.command_count == 2  # whether sudo is needed, what the host is
    dry = site.run("--dry", lock_lines=lock_lines)
    assert dry.returncode == 0, dry.stderr


def test_a_run_whose_answers_are_older_than_another_run_stops(site: Site) -> None:
    result = site.run("-y")
    assert result.returncode == 1
    assert "alice@laptop has changed this site since this run read it" in result.stderr
    assert "run again" in result.stderr


def test_a_run_that_changes_nothing_asks_for_no_lock(site: Site) -> None:
    result = site.run("-y", "--unchanged")
    assert "alice" not in result.stderr
    assert json.loads((site.folder / "run.lock").read_text())["user"] == "alice@laptop"


def test_a_run_that_changes_something_leaves_its_name(site: Site) -> None:
    (site.folder / "run.lock").unlink()
    result = site.run("-y", "--data", "note=secret")
    assert "failed on @fake/cp1" in result.stderr, result.stderr
    record = json.loads((site.folder / "run.lock").read_text())
    assert record["command"] == (
        "pyinfra tests/plan/inventories/locked.py deploys/site.py --data note=... -y"
    )
    free = ["flock", "-n", str(site.folder / "run.lock"), "true"]
    assert subprocess.run(free, check=False).returncode == 0
