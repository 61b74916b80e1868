"""Volumes for the cluster: the local-path provisioner, and which StorageClass is the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.templates import render

NAMESPACE = "local-path-storage"
PROVISIONER = "local-path-provisioner"
STORAGE_CLASS = "local-path"
PROVISIONER_NAME = "rancher.io/local-path"  # of its StorageClass
DEFAULT = "storageclass.kubernetes.io/is-default-class"
_IMAGE = "docker.io/rancher/local-path-provisioner"
_HELPER = "docker.io/library/busybox"


@dataclass(frozen=True)
class LocalVolume:
    """A volume that is a folder of one node.

    + claim: namespace/name of who asked for it
    """

    claim: str
    path: str


def images(lock: Lock) -> tuple[str, str]:
    """The images of the provisioner itself and of its helper pods."""
    provisioner = f"{_IMAGE}:{lock.images.local_path_provisioner}"
    return provisioner, f"{_HELPER}:{lock.images.busybox}"


def volumes_on(node: str, volumes: Mapping[str, Any]) -> list[LocalVolume]:
    """The folders that the provisioner made on a node, by their claims.

    + volumes: PersistentVolumes, as `kubectl get pv -o json` lists them
    """
    found = []
    for item in volumes["items"]:
        made_by = item["metadata"].get("annotations", {}).get("pv.kubernetes.io/provisioned-by")
        spec, claim = item["spec"], item["spec"].get("claimRef", {})
        path = (spec.get("hostPath") or spec.get("local") or {}).get("path", "")
        if made_by == PROVISIONER_NAME and path and node in _nodes(spec):
            found.append(LocalVolume(f"{claim.get('namespace')}/{claim.get('name')}", path))
    return sorted(found, key=lambda volume: volume.claim)


def _nodes(spec: Mapping[str, Any]) -> set[str]:
    terms = spec.get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms", [])
    wanted = [one for term in terms for one in term.get("matchExpressions", [])]
    return {name for one in wanted if one["operator"] == "In" for name in one["values"]}


def local_path(settings: Settings, lock: Lock) -> str:
    """The provisioner's manifest, without a digest.

    Its StorageClass is not marked as the default here: that depends on what else is there.
    """
    everywhere = {
        "node": "DEFAULT_PATH_FOR_NON_LISTED_NODES",
        "paths": [settings.monitoring.storage.path],
    }
    image, helper_image = images(lock)
    return render(
        "kubernetes/local-path.yaml.j2",
        image=image,
        helper_image=helper_image,
        config={"nodePathMap": [everywhere]},
        gated=settings.gate.enabled,
    )


def default_change(classes: Mapping[str, bool]) -> str | None:
    """What to do to our class so that it is the default one unless the cluster has another.

    + classes: StorageClass -> whether it is a default one

    Returns the annotation as `kubectl annotate` takes it; None: it is right.
    """
    ours = classes.get(STORAGE_CLASS, False)
    others = any(default for name, default in classes.items() if name != STORAGE_CLASS)
    if ours and others:
        return f"{DEFAULT}-"
    return None if ours or others else f"{DEFAULT}=true"


def missing_class(classes: Mapping[str, bool], class_name: str | None) -> tuple[str, str] | None:
    """Why claims of this class would wait without an end, and the remedy; None when they don't.

    + class_name: the class they name; None: the cluster's default one
    """
    known = ", ".join(sorted(classes)) or "none"
    if class_name is not None and class_name not in classes:
        return (
            f"there is no StorageClass {class_name} (there: {known})",
            "make it, or correct monitoring.storage.class_name",
        )
    if class_name is None and not any(classes.values()):
        return (
            f"no StorageClass is the default one (there: {known}), so volumes would wait without "
            "an end",
            "name one in monitoring.storage.class_name, or set monitoring.storage.provisioner = "
            '"local-path" or monitoring.storage.persistent = False',
        )
    return None
