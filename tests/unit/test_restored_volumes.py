"""Claims after a restore of etcd: whose data are there, come back, or are lost."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.exceptions import PyinfraError

from deploys.engine import remote
from deploys.engine import run_ending as ending
from deploys.parts.restore import volume_operations as restored_volumes
from deploys.parts.restore.volume_operations import BackupVolumes, _checked, _returned
from deploys.parts.storage import folder_volumes as local_volumes
from gpuboot.cluster.backup import Backup
from gpuboot.cluster.etcd_restore import Source
from gpuboot.cluster.local_volumes import (
    Folder,
    LocalVolume,
    Outlook,
    made_since,
    outlook,
    parse,
    parse_folders,
    question_lines,
)
from gpuboot.config.exit_codes import COULD_NOT_TELL, FAILED, OK
from gpuboot.templates import render
from gpuboot.verify.report.run import last_lines, run_html
from tests.unit.test_backup import Machine

# as kubectl listed them in a cluster, with shorter names, and one each of other kinds
VOLUME_LIST = """\
team/data\t/v/pvc-1_team_data\tgpu1\trancher.io/local-path\t
monitoring/db\t/v/pvc-2_monitoring_db\tgpu2\trancher.io/local-path\t
team/going\t/v/pvc-3_team_going\tgpu1\trancher.io/local-path\t2026-11-25T09:00:00Z
team/far\t\tzone-a zone-b\tcsi.example\t
/\t/v/free\tgpu1\t\t
team/fast\t/mnt/nvme0\tgpu1\topenebs.io/local\t
"""
DATA = LocalVolume("team/data", "/v/pvc-1_team_data", "gpu1")
DB = LocalVolume("monitoring/db", "/v/pvc-2_monitoring_db", "gpu2")
FAST = LocalVolume("team/fast", "/mnt/nvme0", "gpu1", "openebs.io/local")
ASIDE = "/v/.removed/20261125093000-pvc-1_team_data"


def test_folders_of_one_node_are_the_volumes_that_a_snapshot_lacks() -> None:
    assert parse(VOLUME_LIST) == [DB, DATA, FAST]
    assert [item.is_local_path for item in parse(VOLUME_LIST)] == [True, True, False]
    assert parse("") == []


def test_without_an_api_server_a_backup_lists_no_volumes(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.run("upgrade", NO_API="yes").returncode == 0
    (stored_backup,) = machine.backups
    assert not (stored_backup / "volumes").exists()
    assert (stored_backup / "etcd.db").exists()


def script(mode: str, start: float, *paths: Path) -> dict[str, Folder]:
    """What the script tells of folders."""
    words = ["sh", "-c", render("kubernetes/volume-folders.sh"), "x", mode, str(int(start))]
    result = subprocess.run([*words, *map(str, paths)], capture_output=True, text=True, timeout=30)
    assert result.returncode == 0, result.stderr
    return parse_folders(result.stdout.splitlines())


def has_birth_time(path: Path) -> bool:
    result = subprocess.run(["stat", "-c", "%W", path], capture_output=True, text=True)
    return result.stdout.strip() not in ("", "0", "-")


def test_a_folder_is_there_new_aside_or_gone(tmp_path: Path) -> None:
    if not has_birth_time(tmp_path):
        pytest.skip("this file system tells no birth of a folder")
    present, aside, missing = (tmp_path / f"pvc-{number} of a" for number in (1, 2, 3))
    present.mkdir()
    removed = tmp_path / ".removed"
    for stamp in ("20261101000000", "20261125000000"):
        (removed / f"{stamp}-{aside.name}").mkdir(parents=True)
    newest = str(removed / f"20261125000000-{aside.name}")
    folders = script("look", time.time() + 60, present, aside, missing)
    assert folders == {
        str(present): Folder("there"),
        str(aside): Folder("aside", newest),
        str(missing): Folder("gone"),
    }
    assert script("look", time.time() - 60, present)[str(present)] == Folder("anew")
    assert not aside.exists()
    assert not missing.exists()


def test_folders_are_moved_back_and_those_that_are_gone_made(tmp_path: Path) -> None:
    data, missing, new = (tmp_path / f"pvc-{number}_a_b" for number in (1, 2, 3))
    for place in (data, new):
        (tmp_path / ".removed" / f"20261125000000-{place.name}").mkdir(parents=True)
    (tmp_path / f".removed/20261125000000-{data.name}/rows").write_text("precious")
    new.mkdir()
    (new / "rows").write_text("younger")
    folders = script("back", time.time() + 60, data, missing, new)
    assert (data / "rows").read_text() == "precious"
    assert (new / "rows").read_text() == "younger"
    assert [folder.state for folder in folders.values()] == ["there", "gone", "there"]
    assert missing.stat().st_mode & 0o777 == 0o777
    second_pass = script("back", time.time() + 60, data)
    assert second_pass[str(data)] == Folder("there")


@pytest.mark.parametrize(
    ("folder", "back", "expected_lost"),
    [
        (Folder("there"), "", ""),
        (Folder("aside", ASIDE), DATA.path, ""),
        (Folder("gone"), "", f"{DATA.path} is gone"),
        (Folder("anew"), "", "was made after the backup)"),
        (Folder("anew", ASIDE), "", f"what it held before is in {ASIDE}"),
    ],
)
def test_what_a_restore_would_bring(folder: Folder, back: str, expected_lost: str) -> None:
    result = outlook([DATA], {"gpu1": {DATA.path: folder}})
    assert bool(result.back) is bool(back)
    assert back in "".join(result.back)
    assert bool(result.without_data) is bool(expected_lost)
    assert expected_lost in "".join(result.without_data)
    assert result.unknown == []


@pytest.mark.parametrize(
    ("before", "now", "back", "expected_lost"),
    [
        (Folder("there"), Folder("there"), 0, 0),
        (Folder("there", ASIDE), Folder("there"), 1, 0),  # it was moved back
        (Folder("gone"), Folder("there"), 0, 1),  # a pod has it, empty
        (Folder("aside", ASIDE), Folder("aside", ASIDE), 0, 1),  # it could not be moved
        (None, Folder("anew"), 0, 1),  # the backup had no list
        (None, Folder("there"), 0, 0),
        (Folder("there"), Folder("gone"), 0, 1),  # a helper pod was still at work
    ],
)
def test_what_a_restore_has_brought(
    before: Folder | None, now: Folder, back: int, expected_lost: int
) -> None:
    earlier = {"gpu1": {DATA.path: before}} if before else {}
    result = outlook([DATA], {"gpu1": {DATA.path: now}}, earlier)
    assert (len(result.back), len(result.without_data), result.unknown) == (back, expected_lost, [])


def test_a_node_that_does_not_answer_leaves_its_claims_unknown() -> None:
    result = outlook([DATA, DB], {"gpu1": {DATA.path: Folder("there")}})
    assert result.unknown == ["monitoring/db (gpu2: the node does not answer)"]


def test_the_question_names_the_claims() -> None:
    result = Outlook(back=["team/a (gpu1: /v/a)"], without_data=["team/b (gpu1: /v/b is gone)"])
    text = "\n".join(question_lines([DATA], result))
    assert "come back WITHOUT their data:\n    team/b (gpu1: /v/b is gone)" in text
    assert "team/a (gpu1: /v/a)" in text
    assert "not known" not in text
    assert "no list of volumes" in question_lines(None, Outlook())[0]
    assert question_lines([], Outlook()) == []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Hosts whose commands run here; the cluster has the volumes under the key `listed`."""
    texts = {"listed": VOLUME_LIST.replace("/v/", f"{tmp_path}/"), "away": "gpu2"}

    def run(target: Any, command: str, stdin: str = "") -> str:
        words = ["sh", "-c", command]
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        result = subprocess.run(
            words, capture_output=True, text=True, env={"PATH": path}, timeout=30
        )
        if result.returncode:
            raise remote.RemoteError(result.stderr)
        return result.stdout

    kubectl = tmp_path / "bin/kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(f"#!/bin/sh\ncat {tmp_path}/listed\n")
    kubectl.chmod(0o755)
    (tmp_path / "listed").write_text(texts["listed"])
    monkeypatch.setattr(remote, "run", run)
    monkeypatch.setattr(local_volumes, "reach", lambda target: target.name != texts["away"])
    for name in ("inform", "warn"):
        monkeypatch.setattr(restored_volumes, name, lambda text: None)
    ending.shortfalls.clear()
    yield texts
    ending.shortfalls.clear()


STATE: Any = SimpleNamespace(
    inventory=SimpleNamespace(get_host=lambda name: SimpleNamespace(name=name))
)
HOST: Any = SimpleNamespace(name="cp1")


def backup(folder: Path, taken_at: float) -> BackupVolumes:
    source = Source(Backup("b", taken_at), "", str(folder))
    return restored_volumes.of_backup(STATE, source, {"gpu1": "gpu1", "gpu2": "gpu2"})


def returned(volumes: BackupVolumes) -> bool:
    return _returned(STATE, HOST, volumes.text, volumes.hosts, volumes.since)


def checked(volumes: BackupVolumes) -> bool:
    return _checked(STATE, HOST, volumes.hosts, volumes.since)


def test_data_come_back_and_what_is_lost_is_no_success(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "volumes").write_text(cluster["listed"])
    removed_folder = tmp_path / ".removed/20261125093000-pvc-1_team_data"
    (removed_folder / "rows").mkdir(parents=True)
    volumes = backup(tmp_path, time.time() + 60)
    question = "\n".join(restored_volumes.confirmation_lines(STATE, volumes))
    assert "team/data (gpu1: " in question
    assert "team/fast (gpu1: /mnt/nvme0 is gone)" in question
    assert "monitoring/db (gpu2: the node does not answer)" in question
    assert returned(volumes)
    assert (tmp_path / "pvc-1_team_data/rows").exists()
    assert checked(volumes)
    lines = "\n".join(ending.shortfalls)
    assert "claim team/fast (gpu1: /mnt/nvme0 is gone) came back without its data" in lines
    assert "team/data" not in lines
    assert sorted(ending.shortfalls.values()) == [FAILED, COULD_NOT_TELL]
    assert ending.code(failed=False) == FAILED


def test_an_empty_folder_that_a_pod_has_by_now_is_lost_in_a_second_try_too(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    if not has_birth_time(tmp_path):
        pytest.skip("this file system tells no birth of a folder")
    cluster["away"] = ""
    (tmp_path / "listed").write_text(cluster["listed"].splitlines()[0] + "\n")
    (tmp_path / "pvc-1_team_data").mkdir()
    volumes = backup(tmp_path, time.time() - 3600)  # it has no list
    assert volumes.entries is None
    returned(volumes)
    checked(volumes)
    assert "was made after the backup" in "".join(ending.shortfalls)


def test_a_cluster_whose_data_are_all_there_ends_well(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "listed").write_text(cluster["listed"].splitlines()[0] + "\n")
    (tmp_path / "pvc-1_team_data").mkdir()
    checked(backup(tmp_path, time.time() + 60))
    assert ending.shortfalls == {}
    assert ending.code(failed=False) == OK


def test_volumes_that_cannot_be_listed_are_no_success(
    cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(leader: Any) -> list[LocalVolume]:
        raise PyinfraError("connection refused")

    monkeypatch.setattr(local_volumes, "of_cluster", refuse)
    checked(BackupVolumes(VOLUME_LIST, {}, made_since(0)))
    assert ending.code(failed=False) == COULD_NOT_TELL


def run_json(code: int, *lines: str) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_run.json").read_text())
    for host_result in run["hosts"].values():
        host_result |= {"failed": [], "errors": [], "not_tried": []}
    return run | {"exit": code, "deploy": "restore.py", "shortfalls": list(lines)}


@pytest.mark.parametrize("code", [FAILED, COULD_NOT_TELL])
def test_the_last_screen_and_the_page_name_them(code: int) -> None:
    lines = last_lines(run_json(code, "claim team/data came back without its data"), "pyinfra x")
    assert "claim team/data came back without its data" in lines
    assert lines[-1].startswith("done in ")
    assert "interrupted" not in "".join(lines)
    page = run_html(run_json(code, "claim team/data came back without its data"), proof=False)
    assert "The run is done, and not all is well" in page
    assert "claim team/data came back without its data" in page


def test_a_run_that_was_cut_off_still_says_so() -> None:
    lines = last_lines(run_json(FAILED), "pyinfra x")
    assert "interrupted" in "".join(lines)
    assert "interrupted" in "".join(last_lines(run_json(130, "claim a"), "pyinfra x"))
