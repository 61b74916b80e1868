"""Volumes for the cluster: the local-path provisioner, and which StorageClass is the default."""

from collections.abc import Mapping

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


def images(lock: Lock) -> tuple[str, str]:
    """The images of the provisioner itself and of its helper pods."""
    provisioner = f"{_IMAGE}:{lock.images.local_path_provisioner}"
    return provisioner, f"{_HELPER}:{lock.images.busybox}"


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
        teardown=render(
            "kubernetes/volume-teardown.sh.j2",
            expire=expire(settings.monitoring.storage.keep_removed_days),
        ),
        gated=settings.gate.enabled,
    )


def expire(days: int, delete: str = 'rm -rf "$folder"') -> str:
    """POSIX sh that deletes what lies in `.removed`, its working folder, for longer than that.

    + delete: what is done to such a folder
    """
    return render("kubernetes/volumes-expire.sh.j2", days=days, delete=delete).rstrip()


def default_change(classes: Mapping[str, bool]) -> str | None:
    """What to do to our class so that it is the default one unless the cluster has another.

    + classes: StorageClass -> whether it is a default one

    Returns the annotation as `kubectl annotate` takes it; None: it is right.
    """
    own_is_default = classes.get(STORAGE_CLASS, False)
    other_is_default = any(default for name, default in classes.items() if name != STORAGE_CLASS)
    if own_is_default and other_is_default:
        return f"{DEFAULT}-"
    return None if own_is_default or other_is_default else f"{DEFAULT}=true"


def missing_class(classes: Mapping[str, bool], class_name: str | None) -> tuple[str, str] | None:
    """Why claims of this class would wait without an end, and the remedy; None when they don't.

    + class_name: the class they name; None: the cluster's default one
    """
    known_classes = ", ".join(sorted(classes)) or "none"
    if class_name is not None and class_name not in classes:
        return (
            f"there is no StorageClass {class_name} (there: {known_classes})",
            "make it, or correct monitoring.storage.class_name",
        )
    if class_name is None and not any(classes.values()):
        return (
            f"no StorageClass is the default one (there: {known_classes}), so volumes would wait "
            "without an end",
            "name one in monitoring.storage.class_name, or set monitoring.storage.provisioner = "
            '"local-path" or monitoring.storage.persistent = False',
        )
    return None
