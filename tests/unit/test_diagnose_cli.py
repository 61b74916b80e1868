"""`gpuboot diagnose`: its exit codes, and whom it asks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.diagnose.site_recording import ClusterRecording, HostRecording, Recording

SOUND = HostRecording(
    node="gpu1", host="10.0.0.12", role="worker", gpus=0,
    parts={"diagnose": ("disk\t/ 10 1000 1", "end\tok")},
)  # fmt: skip
SITE = Recording(site="lab", leader="cp1", hosts=(SOUND,), cluster=ClusterRecording(now=1.0))
runner = CliRunner()


def diagnosed(
    monkeypatch: pytest.MonkeyPatch, recording: Recording | None, *options: str
) -> tuple[int, str]:
    def pyinfra(*_: Any, **__: Any) -> runs.PyinfraResult:
        if recording is None:
            return runs.PyinfraResult(1, "", "no such inventory\n    remedy: name one")
        return runs.PyinfraResult(0, recording.to_json(), "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    result = runner.invoke(app, ["diagnose", "inventories/x.py", *options])
    return result.exit_code, result.output


def test_causes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    full = replace(SOUND, parts={"diagnose": ("disk\t/ 99 10 1", "end\tok")})
    code, output = diagnosed(monkeypatch, replace(SITE, hosts=(full,)), "--json")
    assert code == 1
    assert [cause["id"] for cause in json.loads(output)["causes"]] == ["disk-full"]
    code, output = diagnosed(monkeypatch, replace(SITE, hosts=(full,)), "--node", "gpu1")
    assert code == 1
    assert "1. disk-full (certain)" in output


def test_nobody_could_look(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = diagnosed(monkeypatch, None)
    assert code == 2
    assert "remedy: name one" in output
    blind = replace(SITE, cluster=ClusterRecording(error="connection refused"))
    code, output = diagnosed(monkeypatch, blind)
    assert code == 2  # nothing was found, and that tells nothing
    assert "the cluster could not be asked: connection refused" in output


def test_what_is_not_there_cannot_be_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = diagnosed(monkeypatch, SITE, "--pod", "train-0")
    assert code == 2
    assert "there is no pod train-0" in output
    assert "NAMESPACE/NAME" in output
    code, output = diagnosed(monkeypatch, SITE, "--node", "gpu7")
    assert code == 2
    assert "one of gpu1" in output
    assert diagnosed(monkeypatch, SITE, "--node", "gpu1", "--pod", "a/b")[0] == 2


def test_a_bundle_is_written_instead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, output = diagnosed(monkeypatch, SITE, "--bundle", str(tmp_path))
    assert code == 0
    [archive] = tmp_path.iterdir()
    assert output.splitlines()[-1] == str(archive)
    assert archive.name.startswith("gpuboot-bundle-lab-")
    assert diagnosed(monkeypatch, SITE, "--bundle", str(tmp_path / "none"))[0] == 2
    code, output = diagnosed(monkeypatch, SITE, "--bundle", str(tmp_path), "--node", "gpu1")
    assert code == 2
    assert "leave --pod, --node and --json out" in output


def test_a_silent_host_does_not_take_the_whole_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    passed_options: list[str] = []

    def pyinfra(
        _inventory: str, _deploy: str, options: list[str], *_: Any, **__: Any
    ) -> runs.PyinfraResult:
        passed_options.extend(options)
        return runs.PyinfraResult(0, SITE.to_json(), "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    runner.invoke(app, ["diagnose", "inventories/x.py", "--data", "ssh_user=me"])
    assert passed_options == ["--data", "ssh_connect_retries=1", "--data", "ssh_user=me"]
