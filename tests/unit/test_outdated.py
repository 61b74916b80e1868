"""What is newer than the lock, and what its rules say against it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.config import outdated
from gpuboot.config.outdated import Row, rows
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock, lock

VERSIONS = {
    "driver": {"version": "595.91.07"},
    "kubernetes": {"version": "1.35.4", "minor": "1.35"},
    "containerd": {"version": "2.1.4"},
    "charts": {"gpu-operator": {"version": "v26.3.1"}},
}


@pytest.fixture
def locked() -> Lock:
    return lock(Settings.model_validate({"versions": VERSIONS}))


def row(locked: Lock, key: str, *served: str) -> Row:
    (found,) = (one for one in rows(locked, {key: served}) if one.key == key)
    return found


def test_a_newer_patch_and_a_newer_minor_are_told_apart(locked: Lock) -> None:
    served = ("1.35.3-1.1", "1.35.4-1.1", "1.35.9-1.1", "1.36.6-1.1")
    found = row(locked, "kubernetes.version", *served)
    assert (found.patch, found.newest) == ("1.35.9", "1.36.6")
    assert "needs containerd 2.2" in found.verdict


def test_the_packager_s_revision_of_the_locked_version_is_not_newer(locked: Lock) -> None:
    found = row(locked, "containerd.version", "2.1.4-1~debian.12~bookworm")
    assert not found.is_newer


def test_a_prerelease_is_no_release(locked: Lock) -> None:
    assert not row(locked, "charts.gpu-operator.version", "v26.3.1", "v26.7.0-rc.1").is_newer
    found = row(locked, "charts.gpu-operator.version", "v26.7.0", "v26.3.1", "v26.4.0")
    assert (found.newest, found.verdict) == ("v26.7.0", "")


def test_the_rules_of_the_lock_judge_the_newest(locked: Lock) -> None:
    narrow = row(locked, "kubernetes.version", "1.37.0-1.1")
    assert "gpu-operator 26.3.1 supports Kubernetes 1.32 to 1.36" in narrow.verdict


def test_what_nobody_lists_is_unknown(locked: Lock) -> None:
    found = {one.key: one for one in rows(locked, {"driver.version": []})}
    assert found["driver.version"].unknown == "the repository has no version of it"
    assert found["helm.version"].unknown
    assert not found["helm.version"].is_newer


def answer(locked: Lock, **found: object) -> dict[str, object]:
    none: dict[str, object] = {"packages": {}, "charts": {}, "silent": []}
    return {"host": "cp1", "lock": locked.model_dump(mode="json"), **none, **found}


def test_what_hosts_answered_is_put_together(locked: Lock) -> None:
    leader = answer(
        locked,
        packages={"kubelet": ["1.35.4-1.1"]},
        charts={"gpu-operator": ["v26.3.1"]},
        silent=["kubernetes-1.36", "docker"],
    )
    node = answer(locked, packages={"nvidia-open": ["595.91.07-1"]})
    assert outdated.served([leader, node]) == {
        "kubernetes.version": ["1.35.4-1.1"],
        "driver.version": ["595.91.07-1"],
        "charts.gpu-operator.version": ["v26.3.1"],
    }
    assert outdated.silent([leader, node], locked) == ["cp1: docker"]


@pytest.mark.parametrize(("served", "code"), [("1.35.4-1.1", 0), ("1.35.9-1.1", 1)])
def test_the_command_tells_by_its_exit_code(
    locked: Lock, monkeypatch: pytest.MonkeyPatch, served: str, code: int
) -> None:
    line = json.dumps(answer(locked, packages={"kubelet": [served]}, silent=["cuda"]))
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.Ended(0, line, ""))
    done = CliRunner().invoke(app, ["outdated", "inventories/example.py"])
    assert done.exit_code == code, done.output
    assert "kubernetes.version" in done.output
    assert ("1.35.9" in done.output) is bool(code)
    assert "did not answer: cp1: cuda" in done.output
    as_json = CliRunner().invoke(app, ["outdated", "inventories/example.py", "--json"])
    rows = {row["key"]: row for row in json.loads(as_json.output)}
    assert rows["driver.version"]["unknown"]


def test_the_command_could_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = runs.Ended(1, "", "cp1 cannot be reached")
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: ended)
    done = CliRunner().invoke(app, ["outdated", "inventories/example.py"])
    assert done.exit_code == runs.COULD_NOT_TELL
    assert "cp1 cannot be reached" in done.output
