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
    (outdated_row,) = (
        candidate for candidate in rows(locked, {key: served}) if candidate.key == key
    )
    return outdated_row


def test_a_newer_patch_and_a_newer_minor_are_told_apart(locked: Lock) -> None:
    served = ("1.35.3-1.1", "1.35.4-1.1", "1.35.9-1.1", "1.36.6-1.1")
    outdated_row = row(locked, "kubernetes.version", *served)
    assert (outdated_row.patch, outdated_row.newest) == ("1.35.9", "1.36.6")
    assert "needs containerd 2.2" in outdated_row.verdict


def test_the_packager_s_revision_of_the_locked_version_is_not_newer(locked: Lock) -> None:
    outdated_row = row(locked, "containerd.version", "2.1.4-1~debian.12~bookworm")
    assert not outdated_row.is_newer


def test_a_prerelease_is_no_release(locked: Lock) -> None:
    assert not row(locked, "charts.gpu-operator.version", "v26.3.1", "v26.7.0-rc.1").is_newer
    outdated_row = row(locked, "charts.gpu-operator.version", "v26.7.0", "v26.3.1", "v26.4.0")
    assert (outdated_row.newest, outdated_row.verdict) == ("v26.7.0", "")


def test_the_rules_of_the_lock_judge_the_newest(locked: Lock) -> None:
    narrow = row(locked, "kubernetes.version", "1.37.0-1.1")
    assert "gpu-operator 26.3.1 supports Kubernetes 1.32 to 1.36" in narrow.verdict


def test_what_nobody_lists_is_unknown(locked: Lock) -> None:
    by_key = {candidate.key: candidate for candidate in rows(locked, {"driver.version": []})}
    assert by_key["driver.version"].unknown == "the repository has no version of it"
    assert by_key["helm.version"].unknown
    assert not by_key["helm.version"].is_newer


def answer(locked: Lock, **fields: object) -> dict[str, object]:
    none: dict[str, object] = {"packages": {}, "charts": {}, "silent": []}
    return {"host": "cp1", "lock": locked.model_dump(mode="json"), **none, **fields}


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
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.PyinfraResult(0, line, ""))
    result = CliRunner().invoke(app, ["outdated", "inventories/example.py"])
    assert result.exit_code == code, result.output
    assert "kubernetes.version" in result.output
    assert ("1.35.9" in result.output) is bool(code)
    assert "did not answer: cp1: cuda" in result.output
    as_json = CliRunner().invoke(app, ["outdated", "inventories/example.py", "--json"])
    rows = {row["key"]: row for row in json.loads(as_json.output)}
    assert rows["driver.version"]["unknown"]


def test_the_command_could_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    run_result = runs.PyinfraResult(1, "", "cp1 cannot be reached")
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: run_result)
    result = CliRunner().invoke(app, ["outdated", "inventories/example.py"])
    assert result.exit_code == runs.COULD_NOT_TELL
    assert "cp1 cannot be reached" in result.output
