"""The local-path provisioner, and the StorageClass that volumes get."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from gpuboot.config.settings import Settings, parse_settings
from gpuboot.config.versions import lock
from gpuboot.kubernetes.storage import (
    LocalVolume,
    default_change,
    local_path,
    missing_class,
    volumes_on,
)

FOLDER = "/var/lib/gpuboot/volumes/pvc-228b3001_monitoring_db"


def volume(**more: Any) -> dict[str, Any]:
    """As the provisioner makes it."""
    wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu1"]}
    return {
        "metadata": {
            "annotations": {
                "local.path.provisioner/selected-node": "gpu1",
                "pv.kubernetes.io/provisioned-by": "rancher.io/local-path",
            },
            "name": "pvc-228b3001",
        },
        "spec": {
            "claimRef": {"kind": "PersistentVolumeClaim", "name": "db", "namespace": "monitoring"},
            "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}},
            "storageClassName": "local-path",
            **more,
        },
    }


def objects(settings: Settings) -> dict[str, dict[str, Any]]:
    made = yaml.safe_load_all(local_path(settings, lock(settings)))
    return {item["kind"]: item for item in made}


def test_the_manifest_follows_the_settings() -> None:
    made = objects(parse_settings({"monitoring": {"storage": {"path": "/data/volumes"}}}))
    config = json.loads(made["ConfigMap"]["data"]["config.json"])
    assert config["nodePathMap"] == [
        {"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/data/volumes"]}
    ]
    assert made["StorageClass"]["provisioner"] == "rancher.io/local-path"
    assert made["StorageClass"]["volumeBindingMode"] == "WaitForFirstConsumer"
    assert "annotations" not in made["StorageClass"]["metadata"]


def test_every_image_is_pinned() -> None:
    made, images = objects(Settings()), lock(Settings()).images
    [container] = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == (
        f"docker.io/rancher/local-path-provisioner:{images.local_path_provisioner}"
    )
    helper = yaml.safe_load(made["ConfigMap"]["data"]["helperPod.yaml"])
    [container] = helper["spec"]["containers"]
    assert container["image"] == f"docker.io/library/busybox:{images.busybox}"


def test_a_folder_is_made_and_removed_where_the_provisioner_says() -> None:
    data = objects(Settings())["ConfigMap"]["data"]
    assert 'mkdir -m 0777 -p "$VOL_DIR"' in data["setup"]
    assert 'rm -rf "$VOL_DIR"' in data["teardown"]
    assert all("set -eu" in data[name] for name in ("setup", "teardown"))


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
    ("classes", "wanted", "said"),
    [
        ({"ceph": True}, None, ""),
        ({"ceph": False}, "ceph", ""),
        ({"ceph": True}, "fast", "no StorageClass fast (there: ceph)"),
        ({"ceph": False}, None, "no StorageClass is the default one (there: ceph)"),
        ({}, None, "(there: none)"),
    ],
)
def test_volumes_that_nobody_would_make(
    classes: dict[str, bool], wanted: str | None, said: str
) -> None:
    problem = missing_class(classes, wanted)
    assert (problem is not None) is bool(said)
    if problem:
        cause, remedy = problem
        assert said in cause
        assert remedy


def test_volumes_of_a_node_are_those_that_the_provisioner_made_there() -> None:
    of_others = volume()
    of_others["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "nfs.example"}
    by_hand = volume()
    del by_hand["metadata"]["annotations"]
    as_local = volume(local={"path": "/data/db"}, hostPath=None)
    remote = volume(hostPath=None, nodeAffinity={}, csi={"driver": "csi.example"})
    listed = {"items": [volume(), of_others, by_hand, as_local, remote]}
    assert volumes_on("gpu1", listed) == [
        LocalVolume("monitoring/db", FOLDER),
        LocalVolume("monitoring/db", "/data/db"),
    ]
    assert volumes_on("gpu2", listed) == []
