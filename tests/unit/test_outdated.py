"""What is newer than the lock, and what its rules say against it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.config import first_digests, outdated
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
    assert "recommends containerd 2.2 or newer for Kubernetes 1.36" in outdated_row.verdict


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
    none: dict[str, object] = {
        name: {} if name in ("packages", "charts") else []
        for name in ("packages", "charts", "silent", "installed", "releases", "images", "keys")
    }
    document = locked.model_dump(mode="json")
    return {"host": "cp1", "cluster": "lab", "lock": document, **none, **fields}


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


def test_what_runs_is_beside_what_is_locked_with_the_end_of_what_ends_first(locked: Lock) -> None:
    answers = [
        answer(
            locked,
            installed=[["kubelet", "1.34.2-1.1"], ["helm", "v4.3.0"]],
            releases=[["gpu-operator", "v26.3.1"], ["somebody", "1.0"]],
            images=[["flannel", "v0.28.10"], ["dcgm-exporter", "4.5.3-4.8.2"], ["app", "1"]],
        ),
        answer(locked, installed=[["kubelet", "1.35.4-1.1"], ["nvidia-open", "580.178.04-1"]]),
    ]
    by_key = {item.key: item for item in rows(locked, {}, outdated.installed(answers))}
    kubernetes = by_key["kubernetes.version"]
    assert (kubernetes.installed, kubernetes.end) == (("1.34.2", "1.35.4"), "2026-10-27")
    assert by_key["driver.version"].end == "2028-06-30", "of what runs, not of what is locked"
    assert by_key["containerd.version"].end == "2026-07-03", "nothing tells what runs"
    assert by_key["charts.gpu-operator.version"].installed == ("v26.3.1",)
    assert by_key["images.dcgm_exporter"].installed == ("4.5.3-4.8.2",)
    assert by_key["flannel.version"].installed == ("v0.28.10",)
    assert by_key["helm.version"].installed == ("v4.3.0",)


def test_a_step_says_what_it_changes(locked: Lock) -> None:
    assert row(locked, "driver.version", "595.112.07").changes == ()
    (text,) = row(locked, "driver.version", "595.112.07", "620.70.06").changes
    assert text == "615 has open kernel modules alone"
    assert not row(locked, "driver.version", "595.91.07").changes


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


def test_what_has_no_digest_is_named(
    locked: Lock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    charts = dict(locked.charts)
    stack = charts["kube-prometheus-stack"]
    charts["kube-prometheus-stack"] = stack.model_copy(update={"sha256": "ab" * 32})
    pinned = locked.model_copy(update={"charts": charts})
    monkeypatch.chdir(tmp_path)
    first_digests.record(
        "lab", first_digests.chart_key("kube-prometheus-stack", stack.version), "ab" * 32
    )
    monkeypatch.setattr(
        runs, "pyinfra", lambda *_, **__: runs.PyinfraResult(0, json.dumps(answer(pinned)), "")
    )
    result = CliRunner().invoke(app, ["outdated", "inventories/example.py", "--json"])
    digests = {row["key"]: row["digest"] for row in json.loads(result.output)}
    assert digests["charts.kube-prometheus-stack.version"] == "first seen"
    assert digests["charts.gpu-operator.version"] == "locked"
    assert digests["charts.dcgm-exporter.version"] == "none"
    assert digests["images.grafana"] == "none"
    assert digests["driver.version"] == "", "its repository signs it"
    text = CliRunner().invoke(app, ["outdated", "inventories/example.py"]).output
    assert "with the digest of their first download: charts.kube-prometheus-stack.version" in text


def test_the_command_tells_when_keys_and_support_end(
    locked: Lock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = [
        {"repository": "kubernetes", "fingerprint": "DE15", "end": 1798540000},
        {"repository": "docker", "fingerprint": "9DC8", "end": 0},
    ]
    packages = {"kubelet": ["1.35.9-1.1"], "nvidia-container-toolkit": ["1.20.2-1"]}
    line = json.dumps(answer(locked, packages=packages, keys=keys))
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.PyinfraResult(0, line, ""))
    file = tmp_path / "outdated.prom"
    arguments = ["outdated", "inventories/example.py", "--metrics", str(file)]
    text = CliRunner().invoke(app, arguments).output
    assert "2027-02-28" in text
    assert "not known, as of 2026-11-26" in text
    assert "repository_keys.kubernetes (DE15) ends: 2026-12-29" in text
    assert "repository_keys.docker (9DC8) ends: never" in text
    lines = [line for line in file.read_text().splitlines() if line[0] != "#"]
    labels = 'cluster="lab",command="outdated"'
    assert lines[0] == (
        'gpuboot_version_newer{cluster="lab",key="kubernetes.version",locked="1.35.4",'
        'newest="1.35.9"} 1'
    )
    assert (
        f'gpuboot_support_end_timestamp_seconds{{{labels},key="driver.version",'
        'version="595.91.07"} 1806451200' in lines
    )
    assert lines[-1] == (
        f'gpuboot_repository_key_end_timestamp_seconds{{{labels},repository="kubernetes",'
        'fingerprint="DE15"} 1798502400'
    )
    by_key = {
        row["key"]: row
        for row in json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    }
    assert by_key["kubernetes.version"]["end"] == "2027-02-28"
    assert by_key["driver.version"]["as_of"] == "2026-11-09"
    assert all(row["end"] or date.fromisoformat(row["as_of"]) for row in by_key.values())
    assert by_key["repository_keys.kubernetes"]["end"] == "2026-12-29"


def test_a_metrics_file_needs_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: pytest.fail("hosts were asked"))
    path = tmp_path / "missing" / "outdated.prom"
    result = CliRunner().invoke(app, ["outdated", "inventories/example.py", "--metrics", str(path)])
    assert result.exit_code == runs.COULD_NOT_TELL
    assert "there is no folder" in result.output


def test_the_command_could_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    run_result = runs.PyinfraResult(1, "", "cp1 cannot be reached")
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: run_result)
    result = CliRunner().invoke(app, ["outdated", "inventories/example.py"])
    assert result.exit_code == runs.COULD_NOT_TELL
    assert "cp1 cannot be reached" in result.output
