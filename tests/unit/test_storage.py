"""The local-path provisioner, and the StorageClass that volumes get."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploys.parts.storage.fact import Removed, RemovedVolumes
from gpuboot.cluster.local_path import default_change, local_path, missing_class
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.config.versions import lock


def objects(settings: Settings) -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all(local_path(settings, lock(settings)))
    return {item["kind"]: item for item in documents}


def test_the_manifest_follows_the_settings() -> None:
    documents = objects(parse_settings({"monitoring": {"storage": {"path": "/data/volumes"}}}))
    config = json.loads(documents["ConfigMap"]["data"]["config.json"])
    assert config["nodePathMap"] == [
        {"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/data/volumes"]}
    ]
    assert documents["StorageClass"]["provisioner"] == "rancher.io/local-path"
    assert documents["StorageClass"]["volumeBindingMode"] == "WaitForFirstConsumer"
    assert "annotations" not in documents["StorageClass"]["metadata"]


def test_every_image_is_pinned() -> None:
    documents, images = objects(Settings()), lock(Settings()).images
    [container] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == (
        f"docker.io/rancher/local-path-provisioner:{images.local_path_provisioner}"
    )
    helper = yaml.safe_load(documents["ConfigMap"]["data"]["helperPod.yaml"])
    [container] = helper["spec"]["containers"]
    assert container["image"] == f"docker.io/library/busybox:{images.busybox}"


@pytest.fixture(params=[["dash"], ["busybox", "ash"]], ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    """Shells of the image of helper pods, and of others that a site may take for it."""
    words: list[str] = request.param
    return words


def run(shell: list[str], step: str, volume: Path, days: int = 15) -> None:
    """A step of the provisioner, as its helper pod has it."""
    settings = parse_settings({"monitoring": {"storage": {"keep_removed_days": days}}})
    script = objects(settings)["ConfigMap"]["data"][step]
    result = subprocess.run(
        [*shell, "-c", script], env={"PATH": "/usr/bin:/bin", "VOL_DIR": str(volume)}, timeout=30
    )
    assert result.returncode == 0


def aside(volume: Path) -> list[Path]:
    return sorted((volume.parent / ".removed").iterdir())


def test_the_folder_of_a_deleted_volume_is_moved_aside(shell: list[str], tmp_path: Path) -> None:
    volume = tmp_path / "pvc-1_team_data"
    run(shell, "setup", volume)
    assert volume.stat().st_mode & 0o777 == 0o777
    (volume / "rows").write_text("precious")
    run(shell, "teardown", volume)
    [folder] = aside(volume)
    assert folder.name.endswith("-pvc-1_team_data")
    assert (folder / "rows").read_text() == "precious"
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert not volume.exists()
    run(shell, "teardown", volume)  # a helper pod that was killed is tried again
    assert aside(volume) == [folder]


def test_what_is_aside_for_long_enough_is_deleted(shell: list[str], tmp_path: Path) -> None:
    volume = tmp_path / "pvc-1_team_data"
    for name in ("20200101000000-pvc-0_a_b", "29990101000000-pvc-9_a_b", "mine"):
        (tmp_path / ".removed" / name / "deep").mkdir(parents=True)
    volume.mkdir()
    run(shell, "teardown", volume)
    names = [path.name for path in aside(volume)]
    assert "20200101000000-pvc-0_a_b" not in names
    assert len(names) == 3


def test_nothing_is_kept_aside_for_no_days(shell: list[str], tmp_path: Path) -> None:
    volume = tmp_path / "pvc-1_team_data"
    volume.mkdir()
    run(shell, "teardown", volume, days=0)
    assert aside(volume) == []


@pytest.mark.parametrize(
    ("classes", "change"),
    [
        ({"local-path": False}, "storageclass.kubernetes.io/is-default-class=true"),
        ({"local-path": True}, None),
        ({"local-path": False, "ceph": True}, None),
        ({"local-path": True, "ceph": True}, "storageclass.kubernetes.io/is-default-class-"),
    ],
)
def test_ours_is_the_default_only_where_no_other_is(
    classes: dict[str, bool], change: str | None
) -> None:
    assert default_change(classes) == change


@pytest.mark.parametrize(
    ("classes", "requested", "expected"),
    [
        ({"ceph": True}, None, ""),
        ({"ceph": False}, "ceph", ""),
        ({"ceph": True}, "fast", "no StorageClass fast (there: ceph)"),
        ({"ceph": False}, None, "no StorageClass is the default one (there: ceph)"),
        ({}, None, "(there: none)"),
    ],
)
def test_volumes_that_nobody_would_make(
    classes: dict[str, bool], requested: str | None, expected: str
) -> None:
    problem = missing_class(classes, requested)
    assert (problem is not None) is bool(expected)
    if problem:
        cause, remedy = problem
        assert expected in cause
        assert remedy


def removed_on(shell: list[str], folder: Path, days: int = 15) -> Removed:
    fact = RemovedVolumes()
    words = [*shell, "-c", fact.command(folder=str(folder), days=days)]
    result = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
    return fact.process(result.stdout.splitlines())


def test_what_is_aside_is_counted_and_old_folders_named(shell: list[str], tmp_path: Path) -> None:
    assert removed_on(shell, tmp_path) == Removed()
    (tmp_path / ".removed").mkdir()
    assert removed_on(shell, tmp_path).folders == ()
    names = ("20200101000000-pvc-0_a b", "29990101000000-pvc-9_a_b")
    for name in names:
        (tmp_path / ".removed" / name).mkdir()
    (tmp_path / ".removed" / names[1] / "rows").write_bytes(b"x" * (1 << 20))
    removed = removed_on(shell, tmp_path)
    assert (removed.folders, removed.expired) == (names, names[:1])
    assert removed.size_kib is not None
    assert 1024 <= removed.size_kib < 2048
