"""`gpuboot diagnose`: its exit codes, and whom it asks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.diagnose.recording import ClusterRecording, HostRecording, Recording

SOUND = HostRecording(
    node="gpu1", host="10.0.0.12", role="worker", gpus=0,
    parts={"diagnose": ("disk\t/ 10 1000 1", "end\tok")},
)  # fmt: skip
SITE = Recording(site="lab", leader="cp1", hosts=(SOUND,), cluster=ClusterRecording(now=1.0))
runner = CliRunner()


def diagnosed(
    monkeypatch: pytest.MonkeyPatch, recording: Recording | None, *options: str
) -> tuple[int, str]:
    def pyinfra(*_: Any, **__: Any) -> runs.Ended:
        if recording is None:
            return runs.Ended(1, "", "no such inventory\n    remedy: name one")
        return runs.Ended(0, recording.to_json(), "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    done = runner.invoke(app, ["diagnose", "inventories/x.py", *options])
    return done.exit_code, done.output


def test_causes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    full = replace(SOUND, parts={"diagnose": ("disk\t/ 99 10 1", "end\tok")})
    code, told = diagnosed(monkeypatch, replace(SITE, hosts=(full,)), "--json")
    assert code == 1
    assert [one["id"] for one in json.loads(told)["causes"]] == ["disk-full"]
    code, told = diagnosed(monkeypatch, replace(SITE, hosts=(full,)), "--node", "gpu1")
    assert code == 1
    assert "1. disk-full (certain)" in told


def test_nobody_could_look(monkeypatch: pytest.MonkeyPatch) -> None:
    code, told = diagnosed(monkeypatch, None)
    assert code == 2
    assert "remedy: name one" in told
    blind = replace(SITE, cluster=ClusterRecording(error="connection refused"))
    code, told = diagnosed(monkeypatch, blind)
    assert code == 2  # nothing was found, and that tells nothing
    assert "the cluster could not be asked: connection refused" in told


def test_what_is_not_there_cannot_be_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    code, told = diagnosed(monkeypatch, SITE, "--pod", "train-0")
    assert code == 2
    assert "there is no pod train-0" in told
    assert "NAMESPACE/NAME" in told
    code, told = diagnosed(monkeypatch, SITE, "--node", "gpu7")
    assert code == 2
    assert "one of gpu1" in told
    assert diagnosed(monkeypatch, SITE, "--node", "gpu1", "--pod", "a/b")[0] == 2


def test_a_silent_host_does_not_take_the_whole_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def pyinfra(_inventory: str, _deploy: str, more: list[str], *_: Any, **__: Any) -> runs.Ended:
        given.extend(more)
        return runs.Ended(0, SITE.to_json(), "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    runner.invoke(app, ["diagnose", "inventories/x.py", "--data", "ssh_user=me"])
    assert given == ["--data", "ssh_connect_retries=1", "--data", "ssh_user=me"]
