"""What a mirror takes beside packages: images that objects, kubeadm and charts name; addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import platforms, repositories
from gpuboot.mirror import images, mirror_layout
from gpuboot.mirror import mirror_requirements as wanted
from gpuboot.mirror.images import BadImageError, Reference
from gpuboot.mirror.mirror_requirements import PackageRequest, Site
from gpuboot.site.load_site import load
from tests.unit.mirror.mirror_upstream import digest

NODES = (
    Node("cp1", "cp1", "192.0.2.1", "control_plane", 0, leader=True),
    Node("gpu1", "gpu1", "192.0.2.2", "worker", 8, leader=False),
)
OBJECTS = """
apiVersion: nvidia.com/v1
kind: ClusterPolicy
spec:
  driver: {enabled: false, repository: nvcr.io/nvidia, image: driver, version: "1"}
  devicePlugin: {repository: nvcr.io/nvidia, image: k8s-device-plugin, version: v0.19.0}
  validator: {repository: nvcr.io/nvidia, image: gpu-operator, version: "sha256:DIGEST"}
  sandboxWorkloads: {enabled: false}
  vfioManager: {enabled: true, repository: nvcr.io/nvidia, image: vfio, version: "1"}
---
kind: Deployment
spec:
  template:
    spec:
      initContainers: [{image: "quay.io/a/init:1"}, {image: "busybox:1.37"}, {image: "a/b:2"}]
      containers:
        - image: registry.k8s.io/x/y:v2@sha256:DIGEST
          args: ["--reloader=quay.io/a/reloader:v3", "--listen=example.com/path", "--n=a.b/c"]
          env: [{name: VALIDATOR_IMAGE, value: "localhost.example:5000/v/w:1"}]
""".replace("DIGEST", "a" * 64)


def test_images_are_found_wherever_objects_name_them() -> None:
    assert images.of_objects(yaml.safe_load_all(OBJECTS)) == [
        "docker.io/a/b:2",
        "docker.io/library/busybox:1.37",
        "localhost.example:5000/v/w:1",
        f"nvcr.io/nvidia/gpu-operator@sha256:{'a' * 64}",
        "nvcr.io/nvidia/k8s-device-plugin:v0.19.0",
        "quay.io/a/init:1",
        "quay.io/a/reloader:v3",
        f"registry.k8s.io/x/y:v2@sha256:{'a' * 64}",
    ]


def test_references_are_whole_or_refused() -> None:
    pinned = images.reference(f"quay.io/a/b:1@sha256:{'0' * 64}")
    assert pinned == Reference("quay.io", "a/b", "1", f"sha256:{'0' * 64}")
    assert pinned.manifest_name == pinned.digest
    assert str(pinned) == f"quay.io/a/b:1@sha256:{'0' * 64}"
    for reference in ("busybox:1", "quay.io/a/b", "quay.io/a/b@sha256:0", "quay.io/A/b:1"):
        with pytest.raises(BadImageError, match="remedy"):
            images.reference(reference)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"schemaVersion": 1, "fsLayers": []}', b'{"layers": [{"digest": "x"}]}',
     b'{"manifests": [{"platform": {"os": "linux", "architecture": "amd64"}, "size": 1,'
     b' "digest": "sha256:../../etc"}]}'],
)  # fmt: skip
def test_an_answer_that_is_no_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(BadImageError, match="no manifest that containerd pulls"):
        images.parse("quay.io/a/b:1", content, ["amd64"])


def test_layers_that_lie_elsewhere_are_not_mirrored() -> None:
    layer, foreign_layer = ({"digest": digest(text), "size": 1} for text in (b"a", b"b"))
    tree = {"config": layer, "layers": [{**foreign_layer, "urls": ["https://elsewhere.example"]}]}
    parsed = images.parse("x", json.dumps(tree).encode(), ["amd64"])
    assert [blob.digest for blob in parsed.blobs] == [digest(b"a")]


def test_docker_hub_has_another_address_than_its_name_and_mirrors_go_before() -> None:
    assert images.base_url("docker.io", {}) == "https://registry-1.docker.io/v2"
    assert images.base_url("quay.io", {}) == "https://quay.io/v2"
    assert images.base_url("quay.io", {"*": "https://m/v2/all"}) == "https://m/v2/all"


@pytest.mark.parametrize("name", sorted(mirror_layout.APT))
@pytest.mark.parametrize(
    "platform",
    [
        "ubuntu22.04",
        "ubuntu24.04",
        "ubuntu26.04",
        "debian12",
        "debian13",
    ],
)
def test_hosts_ask_for_what_lies_there(name: str, platform: str) -> None:
    """Of every platform and architecture: addresses of the site's settings, and paths."""
    url, system = "https://mirror.example/below", wanted.platform(platform)
    for machine in platforms.ARCHITECTURES:
        folder = mirror_layout.apt_folder(name, system, machine, "1.36")
        mirrors = mirror_layout.site_settings(url, "0" * 64, [f"{folder.path}/Release"])
        settings = parse_settings({"mirrors": mirrors})
        host = repositories.repository(name, system, machine, "1.36", settings)
        assert host.url.rstrip("/") == f"{url}/{folder.path}"
        assert host.key_url == f"{url}/{folder.key_path}"
        assert host.key_sha256 == "0" * 64
        assert f"Suites: {folder.suite or '/'}\n" in host.text
        assert (f"Components: {folder.component}\n" in host.text) is bool(folder.component)


def test_settings_name_what_a_mirror_has_and_nothing_else() -> None:
    paths = ["v2/quay.io/a/manifests/1", "charts/nvidia/x-1.tgz", "apt/docker/linux/debian/gpg"]
    mirrors = mirror_layout.site_settings("https://m.example", "0" * 64, paths)
    assert set(mirrors) == {"apt", "images", "charts"}
    assert set(mirrors["apt"]) == {"docker"}
    assert mirrors["images"] == {"quay.io": "https://m.example/v2/quay.io"}
    assert parse_settings({"mirrors": mirrors}).mirrors.charts == {
        "nvidia": "https://m.example/charts/nvidia"
    }


def site_of(settings: Mapping[str, Any], nodes: tuple[Node, ...] = NODES) -> Site:
    site_settings, lock = load(settings)
    return Site(site_settings, lock, nodes)


def packages_of(
    settings: Mapping[str, Any], nodes: tuple[Node, ...] = NODES
) -> dict[str, PackageRequest]:
    packages = wanted.packages(site_of(settings, nodes), wanted.platform("debian12"), "amd64")
    return {package.name: package for package in packages}


def test_packages_are_those_of_what_the_settings_want() -> None:
    usual = packages_of({})
    assert {"conntrack", "chrony", "kubeadm", "containerd.io", "nvidia-open"} <= set(usual)
    assert usual["kubelet"].pattern == f"{site_of({}).lock.kubernetes.version}-*"
    assert usual["cuda-drivers"].optional
    assert not usual["nvidia-open"].optional
    assert usual["linux-headers-amd64"].optional
    assert not {"haproxy", "keepalived", "mokutil", "jq", "docker-ce"} & set(usual)
    without = packages_of({}, NODES[:1])
    assert not [name for name in without if "nvidia" in name or "cuda" in name]
    assert "keepalived" in packages_of({"cluster": {"virtual_ip": "192.0.2.9"}})
    control_planes = tuple(
        Node(name, name, f"192.0.2.{number}", "control_plane", 0, leader=number == 1)
        for number, name in enumerate(("a", "b", "c"), 1)
    )
    assert "haproxy" in packages_of({}, (*control_planes, NODES[1]))
    assert "jq" in packages_of({"dcgm": "host"})
    mok = packages_of({"driver": {"secure_boot": "mok", "modules": "proprietary"}})
    assert "mokutil" in mok
    assert "nvidia-open" not in mok
    assert not mok["cuda-drivers"].optional


def test_images_of_long_tests_come_with_the_level_that_runs_them() -> None:
    usual, deep = (
        wanted.images(site_of({"verify": {"level": level}})) for level in ("quick", "deep")
    )
    assert len(set(deep) - set(usual)) == 2
    assert not [name for name in wanted.images(site_of({"monitoring": {"enabled": False}}))
                if "local-path" in name]  # fmt: skip
