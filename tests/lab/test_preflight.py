"""What a host lacks for the lab is told all at once, before anything is made."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from lab import preflight
from lab.state import LabError

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def able_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has everything; each test takes something away."""
    monkeypatch.setenv("GPUBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("GPUBOOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, 10**12))
    monkeypatch.setattr(preflight, "_TRIALS", {})
    monkeypatch.setattr(preflight, "_cgroups", lambda: iter(()))
    monkeypatch.setattr(preflight, "_filesystem", lambda path: "ext2/ext3")
    monkeypatch.setattr(preflight, "MEMORY_GIB", 0)


def test_an_able_host_lacks_nothing() -> None:
    preflight.require()


def test_root_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(LabError, match=r"root.*sudo"):
        preflight.require()


def test_everything_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, 5 * 10**9))
    monkeypatch.setattr(preflight, "_filesystem", lambda path: "overlayfs")
    monkeypatch.setattr(preflight, "MEMORY_GIB", 10**6)
    with pytest.raises(LabError) as raised:
        preflight.require()
    text = str(raised.value)
    for part in ("systemd-container", "40 GB", "there are 5", "overlayfs", "of memory"):
        assert part in text
    assert "GPUBOOT_CACHE" in text
    assert "GPUBOOT_STATE" in text


def test_less_disk_is_enough_when_everything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, 20 * 10**9))
    with pytest.raises(LabError, match="40 GB"):
        preflight.require()
    preflight.note_complete()
    preflight.require()


def test_a_trial_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class FailedProcess:
        returncode = 1
        stderr = "unshare: unshare failed: Operation not permitted\n"

    monkeypatch.setattr(preflight, "_TRIALS", {"bridges": "ip link add x type bridge"})
    monkeypatch.setattr("subprocess.run", lambda *args, **options: FailedProcess())
    with pytest.raises(LabError, match=r"bridges: unshare: .*Operation not permitted.*privileged"):
        preflight.require()
