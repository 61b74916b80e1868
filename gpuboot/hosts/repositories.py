"""The package repositories gpuboot installs from: their addresses, keys and files on a host."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboot.config.settings import Settings
from gpuboot.hosts import platforms
from gpuboot.hosts.platforms import PackageManager, Platform

# what `settings.mirrors.apt.<name>.url` takes the place of
UPSTREAM = {
    "docker": "https://download.docker.com/linux",
    "kubernetes": "https://pkgs.k8s.io",
    "cuda": "https://developer.download.nvidia.com/compute/cuda/repos",
    "toolkit": "https://nvidia.github.io/libnvidia-container",
}


@dataclass(frozen=True, kw_only=True)
class Repository:
    """One repository, as a host is to know it.

    + name: its key in `settings.mirrors.apt`
    + manager: the program that reads it
    + url: where packages are
    + path, text: its file on a host; the text names `key_path`
    + key_path: its key file on a host
    + key_url: where its public key is
    + fingerprint: the publisher's key; "" when key_sha256 holds instead
    + key_sha256: digest of a mirror's own key file, or ""
    """

    name: str
    manager: PackageManager
    url: str
    path: str
    text: str
    key_path: str
    key_url: str
    fingerprint: str = ""
    key_sha256: str = ""


@dataclass(frozen=True)
class _Source:
    """A repository of one publisher: its address, its key's address and fingerprint."""

    url: str
    key_url: str
    fingerprint: str
    suite: str = "/"
    components: str = ""


def repository(
    name: str, platform: Platform, machine: str, minor: str, settings: Settings
) -> Repository:
    """The repository that a machine of this platform installs from.

    + name: a key of `settings.mirrors.apt`
    + machine: the kernel's name of the architecture, e.g. x86_64
    + minor: Kubernetes minor, e.g. 1.36: it has one repository for each
    """
    mirror = settings.mirrors.apt.get(name)  # type: ignore[call-overload]
    source = _apt_source(name, mirror.url if mirror else UPSTREAM[name], platform, machine, minor)
    key_sha256 = (mirror.key_sha256 if mirror else None) or ""
    key_path = f"/etc/apt/keyrings/gpuboot-{name}.asc"
    return Repository(
        name=name,
        manager=platform.package_manager,
        url=source.url,
        path=f"/etc/apt/sources.list.d/gpuboot-{name}.sources",
        text=_deb822(source, platforms.ARCHITECTURES[machine][0], key_path),
        key_path=key_path,
        key_url=source.key_url,
        fingerprint="" if key_sha256 else source.fingerprint,
        key_sha256=key_sha256,
    )


def _apt_source(name: str, base: str, platform: Platform, machine: str, minor: str) -> _Source:
    debian, nvidia = platforms.ARCHITECTURES[machine]
    if name == "docker":
        url = f"{base}/{platform.id}"
        return _Source(url, f"{url}/gpg", platforms.DOCKER_KEY, platform.codename, "stable")
    if name == "kubernetes":
        url = f"{base}/core:/stable:/v{minor}/deb/"
        return _Source(url, f"{url}Release.key", platforms.KUBERNETES_KEY)
    if name == "cuda":
        url = f"{base}/{platform.cuda}/{nvidia}/"
        file, fingerprint = platform.cuda_key
        return _Source(url, url + file, fingerprint)
    return _Source(f"{base}/stable/deb/{debian}/", f"{base}/gpgkey", platforms.TOOLKIT_KEY)


def _deb822(source: _Source, architecture: str, key_path: str) -> str:
    """The text of a file of sources.list(5)."""
    components = f"Components: {source.components}\n" if source.components else ""
    return (
        f"# Written by gpuboot\nTypes: deb\nURIs: {source.url}\nSuites: {source.suite}\n"
        f"{components}Architectures: {architecture}\nSigned-By: {key_path}\n"
    )
