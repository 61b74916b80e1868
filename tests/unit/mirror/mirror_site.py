"""A site of Docker hosts, and publishers on this machine who have all that it installs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuboot.config.inventory import Node
from gpuboot.mirror import content, fill, manifest
from gpuboot.mirror.client import Client
from gpuboot.mirror.mirror_requirements import Site
from gpuboot.mirror.signing import Home
from gpuboot.site.load_site import load
from tests.unit.mirror.mirror_upstream import Upstream, digest, paragraph, publish, push

HOST = Node("gpu1", "gpu1", "192.0.2.1", "docker", 2, leader=False, monitor=True)
DISTRIBUTION = (
    "ca-certificates", "curl", "gnupg", "iproute2", "iptables", "kmod", "pciutils", "chrony",
)  # fmt: skip
TOOLKIT = (
    "libnvidia-container1", "libnvidia-container-tools", "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
)  # fmt: skip
IMAGES = {
    "nvcr.io/nvidia/k8s/dcgm-exporter": "1-2", "quay.io/prometheus/prometheus": "v1.0.0",
    "quay.io/prometheus/alertmanager": "v1.0.0", "quay.io/prometheus/node-exporter": "v1.0.0",
    "nvcr.io/nvidia/k8s/cuda-sample": "x",
}  # fmt: skip
DRIVER = "595.112.07"


def made_key(folder: Path) -> Home:
    folder.mkdir(mode=0o700)
    home = Home(folder)
    with home.agent():
        home.run("--passphrase", "", "--quick-generate-key", "test", "ed25519", "sign", "never")
    return home


def fill_upstream(upstream: Upstream, key: Home) -> None:
    def all_of(*paragraphs: str) -> dict[str, str]:
        return {f"{number}": paragraph for number, paragraph in enumerate(paragraphs)}

    docker = [
        paragraph("containerd.io", "2.3.7-1~debian.12~bookworm", depends="libc6"),
        paragraph("docker-ce", "5:29.9.3-1~debian.12~bookworm", depends="docker-ce-cli"),
        paragraph("docker-ce", "5:99.0-1~debian.12~bookworm"),
        paragraph("docker-ce-cli", "5:29.9.3-1~debian.12~bookworm"),
        paragraph("docker-compose-plugin", "5.7.0-1~debian.12~bookworm"),
    ]
    publish(upstream, "/docker/debian", all_of(*docker), key, "bookworm")
    nvidia = [
        paragraph(name, version, depends=needs)
        for version in (f"{DRIVER}-1", "600.1-1")
        for name, needs in {
            "nvidia-open": "nvidia-dkms-open",
            "nvidia-dkms-open": "libc6",
            "nvidia-persistenced": "libc6",
        }.items()
    ]
    pinning = paragraph(f"nvidia-driver-pinning-{DRIVER}", f"{DRIVER}-1")
    publish(upstream, "/cuda/debian12/x86_64", all_of(*nvidia, pinning), key)
    toolkit = [paragraph(name, "1.20.2-1") for name in TOOLKIT]
    publish(upstream, "/toolkit/stable/deb/amd64", all_of(*toolkit), key)
    debian = [paragraph(name, depends="libc6") for name in DISTRIBUTION]
    publish(upstream, "/debian", all_of(*debian, paragraph("libc6"), paragraph("unneeded")), key,
            "bookworm")  # fmt: skip
    for path in ("docker/debian/gpg", "cuda/debian12/x86_64/3bf863cc.pub", "toolkit/gpgkey"):
        upstream.files[f"/{path}"] = key.public()
    for name, tag in IMAGES.items():
        architectures = {"amd64": [b"base", name.encode()], "arm64": [b"arm", name.encode()]}
        push(upstream, name, tag, architectures)


def made_site(upstream: Upstream, keys: tuple[Home, Path], folder: Path, **extra: Any) -> Site:
    ring = folder / "publisher.asc"
    ring.write_bytes(keys[0].public())
    sha256 = digest(keys[0].public()).removeprefix("sha256:")
    mirror = {
        "platforms": ["debian12"],
        "signing_key": str(keys[1]),
        "archives": [
            {"url": f"{upstream.url}/debian", "suites": ["bookworm"], "keyring": str(ring),
             "components": ["stable"]}
        ],
        "sources": {
            "apt": {
                name: {"url": f"{upstream.url}/{name}", "key_sha256": sha256}
                for name in ("docker", "cuda", "toolkit")
            },
            "images": {"*": f"{upstream.url}/v2/none", **{
                name: f"{upstream.url}/v2/{name}" for name in ("nvcr.io", "quay.io")
            }},
        },
        **extra,
    }  # fmt: skip
    images = {
        "dcgm_exporter": "1-2", "prometheus": "v1.0.0", "alertmanager": "v1.0.0",
        "node_exporter": "v1.0.0",
    }  # fmt: skip
    settings, lock = load({"mirror": mirror, "monitoring": {"grafana": False}})
    lock = lock.model_copy(update={"images": lock.images.model_copy(update=images)})
    verify = settings.verify.model_copy(update={"image": "nvcr.io/nvidia/k8s/cuda-sample:x"})
    return Site(settings.model_copy(update={"verify": verify}), lock, (HOST,))


def client(waits: list[float] | None = None) -> Client:
    return Client(sleep=(waits if waits is not None else []).append)


def filled(site: Site, folder: Path) -> manifest.Manifest:
    return fill.fill(client(), site, folder, lambda line: None)[1]


def causes(mirror_manifest: manifest.Manifest, folder: Path) -> list[str]:
    defects = {file.path: content.defect(folder, file) for file in mirror_manifest.files}
    return [problem.cause for problem in manifest.differences(defects)]
