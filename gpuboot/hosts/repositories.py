"""The package repositories gpuboot installs from: their addresses, keys and files on a host.

Addresses and keys of rpm repositories are those of the publishers' own files: Docker's
docker-ce.repo for RHEL, kubernetes.io's "Installing kubeadm" (Red Hat-based distributions),
cuda-rhel9.repo and nvidia-container-toolkit.repo. NVIDIA signs the toolkit's index, not its rpms.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal

from gpuboot.config.settings import Settings
from gpuboot.config.support import Source
from gpuboot.hosts import platforms, proxy
from gpuboot.hosts.platforms import PackageManager, Platform

# what `settings.mirrors.apt.<name>.url` takes the place of
SOURCE = Source(date(2026, 8, 21), "each publisher's installation guide")
UPSTREAM = {
    "docker": "https://download.docker.com/linux",
    "kubernetes": "https://pkgs.k8s.io",
    "cuda": "https://developer.download.nvidia.com/compute/cuda/repos",
    "toolkit": "https://nvidia.github.io/libnvidia-container",
}


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A package repository, as a host is to know it.

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
    """A repository of one publisher: its address, its key's address and fingerprint.

    + suite, components: apt's
    + signed: what the publisher of an rpm repository has signed
    """

    url: str
    key_url: str
    fingerprint: str
    suite: str = "/"
    components: str = ""
    signed: Literal["packages", "index"] = "packages"


def repository(
    name: str, platform: Platform, machine: str, minor: str, settings: Settings
) -> Repository:
    """The repository that a machine of this platform installs from.

    + name: a key of `settings.mirrors.apt`
    + machine: the kernel's name of the architecture, e.g. x86_64
    + minor: Kubernetes minor, e.g. 1.36: it has one repository for each
    """
    mirror = settings.mirrors.apt.get(name)  # type: ignore[call-overload]
    base = mirror.url if mirror else UPSTREAM[name]
    if platform.package_manager == "apt":
        source = _apt_source(name, base, platform, machine, minor)
        path = f"/etc/apt/sources.list.d/gpuboot-{name}.sources"
        key_path = f"/etc/apt/keyrings/gpuboot-{name}.asc"
        text = _deb822(source, platforms.ARCHITECTURES[machine][0], key_path)
    else:
        source = _dnf_source(name, base, platform, machine, minor)
        path = f"/etc/yum.repos.d/gpuboot-{name}.repo"
        key_path = f"/etc/pki/rpm-gpg/gpuboot-{name}.asc"
        text = _repo_file(name, source, key_path, _dnf_options(settings, source.url, bool(mirror)))
    key_sha256 = (mirror.key_sha256 if mirror else None) or ""
    return Repository(
        name=name,
        manager=platform.package_manager,
        url=source.url,
        path=path,
        text=text,
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


def _dnf_source(name: str, base: str, platform: Platform, machine: str, minor: str) -> _Source:
    if name == "docker":
        folder = f"{base}/rhel"
        url = f"{folder}/{platform.version}/{machine}/stable"
        return _Source(url, f"{folder}/gpg", platforms.DOCKER_RPM_KEY)
    if name == "kubernetes":
        url = f"{base}/core:/stable:/v{minor}/rpm/"
        return _Source(url, f"{url}repodata/repomd.xml.key", platforms.KUBERNETES_KEY)
    if name == "cuda":
        url = f"{base}/{platform.cuda}/{platforms.ARCHITECTURES[machine][1]}/"
        file, fingerprint = platform.cuda_key
        return _Source(url, url + file, fingerprint)
    url = f"{base}/stable/rpm/{machine}"
    return _Source(url, f"{base}/gpgkey", platforms.TOOLKIT_KEY, signed="index")


def _dnf_options(settings: Settings, url: str, mirrored: bool) -> list[str]:
    """What a mirror's repository has beside: its certificate authority, and no proxy.

    A proxy itself is the site's own setting in /etc/dnf/dnf.conf.
    """
    options = []
    if mirrored and settings.mirrors.ca_bundle:
        options.append(f"sslcacert={settings.mirrors.ca_bundle}")
    if proxy.is_set(settings.proxy) and proxy.is_direct(url, settings.proxy.no_proxy):
        options.append("proxy=_none_")
    return options


def _repo_file(name: str, source: _Source, key_path: str, options: Iterable[str]) -> str:
    """The text of a file of dnf.conf(5), "Repo Options"."""
    lines = [
        "# Written by gpuboot",
        f"[gpuboot-{name}]",
        f"name=gpuboot: {name}",
        f"baseurl={source.url}",
        "enabled=1",
        f"gpgcheck={int(source.signed == 'packages')}",
        f"repo_gpgcheck={int(source.signed == 'index')}",
        f"gpgkey=file://{key_path}",
        *options,
    ]
    return "".join(f"{line}\n" for line in lines)
