"""What a run reads, and how often: by real commands on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import run_pyinfra

ROOT = Path(__file__).resolve().parents[2]

PARTS = '''
from pyinfra.api.command import StringCommand
from pyinfra.context import host
from typing_extensions import override

from deploys.engine.framed import OneLine
from deploys.engine.answers import read
from deploys.engine.commands import executing
from deploys.engine.operation import operation
from deploys.engine.waiting import wait_until
from gpuboot.cluster.readiness import Progress


class Line(OneLine):
    """The first line of a file, which stands for the cluster."""

    of_cluster = True

    @override
    def command(self, path):
        return f"cat {path} 2>/dev/null; true"


@operation()
def says(path, text):
    if read(Line, path=path) == text:
        host.noop("it says so")
        return
    yield StringCommand(f"echo {text} >{path}")


@operation()
def awaited(path, text):
    if executing():
        wait_until(host, lambda: Progress(read(Line, path=path) == text, "waiting"), 5)
    host.noop("it does")
    yield from ()
'''
DEPLOY = """
from pathlib import Path

from parts import awaited, says
from pyinfra.api.deploy import deploy
from pyinfra.context import host, state

from deploys.parts.files import operations as files
from deploys.engine import compare
from deploys.run.report import watch
from gpuboot.config.settings import parse_settings

HERE = Path(__file__).resolve()
watch(state, parse_settings({"cluster": {"name": "t"}}))
if compare.current() is None:
    compare.compare(lambda: None, __file__)


def at(name):
    return str(HERE.with_name(name))


def write(name, text, title=None):
    files.present(name=title or f"Write {name}", contents={at(name): text})


def say(name, text):
    says(name="Say it", path=at(name), text=text)


def await_(name, text):
    awaited(name="Wait for it", path=at(name), text=text)


@deploy("First")
def first():
    FIRST


@deploy("Second")
def second():
    SECOND


first()
second()
"""


class Site:
    """A folder with a deploy of two phases, on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o644)

    def read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def run(self, first: str, second: str = "pass", hosts: str = "['@local']") -> dict[str, Any]:
        """run.json."""
        deploy = DEPLOY.replace("FIRST", first).replace("SECOND", second)
        (self.folder / "deploy.py").write_text(deploy)
        (self.folder / "parts.py").write_text(PARTS)
        (self.folder / "inventory.py").write_text(f"hosts = {hosts}\n")
        arguments = ["inventory.py", "deploy.py", "-y"]
        result = run_pyinfra(arguments, self.folder, {"PYTHONPATH": str(self.folder)})
        assert result.returncode == 0, result.stderr
        reports = sorted(self.folder.glob("reports/2*/run.json"))
        return dict(json.loads(reports[-1].read_text()))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def names(run: dict[str, Any]) -> list[str]:
    return [item["name"] for item in run["operations"]]


def test_what_has_nothing_to_do_is_not_run(site: Site) -> None:
    site.write(a="1", b="2")
    run = site.run('write("a", "1")', 'write("b", "2")')
    assert (names(run), run["unchanged_operations"]) == ([], 2)


def test_all_that_is_compared_is_read_by_one_command(site: Site) -> None:
    site.write(a="1", b="2", c="old")
    run = site.run(
        'write("a", "1"); write("b", "2")',
        'write("c", "3"); say("d", "x")',
    )
    assert names(run) == ["Write c", "Say it"]
    # all facts; the old text for run.json; the file; what comes after it again; the last change
    assert run["hosts"]["@local"]["commands"] == 5


def test_what_an_earlier_change_undoes_is_done_again(site: Site) -> None:
    run = site.run(
        'write("a", "1")', 'files.present(name="Remove a", contents={}, absent=[at("a")])'
    )
    assert names(run) == ["Write a", "Remove a"]
    assert not (site.folder / "a").exists()


def test_the_cluster_is_read_again_after_a_change_anywhere(site: Site) -> None:
    site.write(cluster="x\n")
    run = site.run(
        'write("a", "1") if host.name != "@local" else None',
        'say("cluster", "x") if host.name == "@local" else None',
        hosts="[('@fake/gpu1', {'fake_delay': 0, 'fake_delay_jitter': 0}), '@local']",
    )
    assert names(run) == ["Write a", "Say it"]
    assert run["hosts"]["@local"]["commands"] == 2


def test_after_a_change_the_rest_is_read_by_one_command(site: Site) -> None:
    site.write(a="old", b="2", c="3", d="x\n")
    run = site.run(
        'write("a", "1"); write("b", "2")',
        'write("c", "3"); say("d", "x")',
    )
    assert names(run) == ["Write a", "Write b", "Write c", "Say it"]
    assert site.read("a") == "1"
    # all facts; the old text; the file; the rest again
    assert run["hosts"]["@local"]["commands"] == 4


def test_a_wait_asks_the_host_each_time(site: Site) -> None:
    site.write(cluster="no\n")
    run = site.run(
        'say("cluster", "yes")',
        'await_("cluster", "yes")',
    )
    assert names(run) == ["Say it", "Wait for it"]
    assert site.read("cluster") == "yes\n"


def test_a_wait_whose_end_is_there_is_not_run(site: Site) -> None:
    site.write(cluster="yes\n")
    assert names(site.run("pass", 'await_("cluster", "yes")')) == []


def test_an_operation_that_is_called_twice_is_two(site: Site) -> None:
    site.write(a="1", b="old")
    run = site.run('write("a", "1", "Same"); write("b", "2", "Same")')
    assert names(run) == ["Same"]
    assert site.read("b") == "2"


def test_hosts_that_share_no_operation_keep_the_order_of_the_deploy(site: Site) -> None:
    run = site.run(
        'write("a", "1") if host.name == "@local" else None;'
        'write("b", "1") if host.name == "@local" else None',
        'write("c", "1") if host.name != "@local" else None',
        hosts="[('@fake/gpu1', {'fake_delay': 0, 'fake_delay_jitter': 0}), '@local']",
    )
    assert names(run) == ["Write a", "Write b", "Write c"]
