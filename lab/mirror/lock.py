"""What a site has to know to use a mirror: versions, digests of keys, registries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from lab.build import image_table, packages
from lab.build.software import kubernetes_version
from lab.build.software_docker import COMPOSE, DOCKER
from lab.build.software_kubernetes import EARLIER, PREVIOUS_MINOR, PREVIOUS_PATCH
from lab.debian_releases import DebianRelease
from lab.gpusim.builds import DRIVER_VERSIONS
from lab.mirror.parts import CHARTS, Repository, repositories
from lab.state import LabError

# Images whose tags gpuboot's lock has (`versions.images`), and which the mirror serves.
IMAGES = {
    "local_path_provisioner": "docker.io/rancher/local-path-provisioner",
    "busybox": "docker.io/library/busybox",
    "metrics_server": "registry.k8s.io/metrics-server/metrics-server",
    "kubelet_csr_approver": "ghcr.io/postfinance/kubelet-csr-approver",
    "prometheus": "quay.io/prometheus/prometheus",
    "alertmanager": "quay.io/prometheus/alertmanager",
    "node_exporter": "quay.io/prometheus/node-exporter",
}


def served(docroot: Path, release: DebianRelease) -> Mapping[str, Repository]:
    """The apt repositories that a document root has, by name."""
    releases = repositories(release)
    return {
        name: repository
        for name, repository in releases.items()
        if (docroot / repository.path).is_dir()
    }


def lock(docroot: Path, release: DebianRelease) -> dict[str, object]:
    """What a site needs for all that this document root has; the rest is the publishers'.

    `previous`: settings with the releases before, which an upgrade starts from; `previous_patch`:
    with the patch release before; `earlier`: the locks of all earlier releases of Kubernetes.
    """
    versions: dict[str, object] = {"charts": _charts(docroot)}
    if (docroot / "helm").is_dir():
        versions |= _built(docroot)
    earlier = {
        earlier_release.version: _kubernetes(earlier_release.version, earlier_release.pause)
        for earlier_release in EARLIER
    }
    previous = {
        "versions": {"kubernetes": earlier[PREVIOUS_MINOR.version]},
        "driver": {"version": DRIVER_VERSIONS[1]},
    }
    keys = {
        name: _sha256(docroot / repository.key_path)
        for name, repository in served(docroot, release).items()
    }
    registries = sorted(path.name for path in (docroot / "v2").iterdir())
    return {
        "versions": versions,
        "previous": previous,
        "previous_patch": {"versions": {"kubernetes": earlier[PREVIOUS_PATCH.version]}},
        "earlier": earlier,
        "keys": keys,
        "registries": registries,
    }


def _charts(docroot: Path) -> dict[str, dict[str, str]]:
    charts = {}
    for chart, repository in CHARTS.items():
        for archive in (docroot / "charts" / repository).glob(f"{chart}-*.tgz"):
            version = archive.name.removeprefix(f"{chart}-").removesuffix(".tgz")
            pinned = {"version": version, "sha256": _sha256(archive)}
            charts[chart] = {"repository": repository, **pinned}
    return charts


def _built(docroot: Path) -> dict[str, object]:
    """Versions of what the lab builds from source instead of its publishers."""
    [tarball] = (docroot / "helm").glob("*.tar.gz")
    return {
        "toolkit": {"version": packages.TOOLKIT},
        "containerd": {"version": packages.CONTAINERD},
        "docker": {"version": DOCKER, "compose": COMPOSE},
        "kubernetes": _kubernetes(kubernetes_version().removeprefix("v"), image_table.PAUSE),
        "helm": {"version": tarball.name.split("-")[1], "sha256": {"amd64": _sha256(tarball)}},
        "images": _tags(docroot),
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _kubernetes(version: str, pause: str) -> dict[str, str]:
    return {
        "version": version,
        "minor": version.rpartition(".")[0],
        "cri_tools": packages.CRI_TOOLS,
        "cni": packages.CNI,
        "pause": pause,
    }


def _tags(docroot: Path) -> dict[str, str]:
    """The tags of images that a site names by itself, by their names in gpuboot's lock."""
    by_name: dict[str, str] = {}
    for name, repository in IMAGES.items():
        manifests = (docroot / "v2" / repository / "manifests").glob("*")
        tags = [path.name for path in manifests if not path.name.startswith("sha256:")]
        if len(tags) > 1:
            raise LabError(f"the mirror has {repository} as {', '.join(sorted(tags))}: which one?")
        if tags:
            by_name[name] = tags[0]
    return by_name
