"""The lab as a site: what is laid over its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab import settings

PREVIOUS = {"versions": {"kubernetes": {"version": "1.36.3"}}, "driver": {"version": "595.91.07"}}


def test_an_earlier_release_is_laid_over_what_is_laid_over_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "state_dir", lambda: tmp_path)
    folder = tmp_path / "labs/lab/mirror"
    folder.mkdir(parents=True)
    (folder / "lab.lock.json").write_text(json.dumps({"previous": PREVIOUS}))
    monkeypatch.delenv(settings.SETTINGS_VARIABLE, raising=False)
    assert json.loads(settings.previous_release("lab")) == PREVIOUS
    overrides = {"driver": {"reboot": "never"}, "verify": {"enabled": False}, "dcgm": "host"}
    monkeypatch.setenv(settings.SETTINGS_VARIABLE, json.dumps(overrides))
    assert json.loads(settings.previous_release("lab")) == {
        "versions": PREVIOUS["versions"],
        "driver": {"version": "595.91.07", "reboot": "never"},
        "verify": {"enabled": False},
        "dcgm": "host",  # no section
    }
