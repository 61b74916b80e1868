"""The apt repositories gpuboot installs from: their addresses, keys and deb822 source files."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboot.config.settings import Settings
from gpuboot.hosts import platforms
from gpuboot.hosts.platforms import Platform

# what `settings.mirrors.apt.<name>.url` takes the place of
UPSTREAM = {
    "docker": "https://download.docker.com/linux",
    "kubernetes": "https://pkgs.k8s.io",
    "cuda": "https://developer.download.nvidia.com/compute/cuda/repos",
    "toolkit": "https://nvidia.github.io/libnvidia-container",
}


@dataclass(frozen=True)
class Source:
    """One repository, as a host is to know it.

    + name: its key in `settings.mirrors.apt`
    + url, suite, components: where packages are; a suite of "/" is a flat repository
    + key_url: where its public key is
    + fingerprint: the publisher's key; "" when key_sha256 holds instead
    + key_sha256: digest of a mirror's own key file, or ""
    """

    name: str
    url: str
    suite: str
    components: str
    architecture: str
    key_url: str
    fingerprint: str = ""
    key_sha256: str = ""

    @property
    def path(self) -> str:
        """Its deb822 file on a host."""
        return f"/etc/apt/sources.list.d/gpuboot-{self.name}.sources"

    @property
    def key_path(self) -> str:
        """Its key file on a host."""
        return f"/etc/apt/keyrings/gpuboot-{self.name}.asc"

    @property
    def text(self) -> str:
        """The deb822 file's text."""
        components = f"Components: {self.components}\n" if self.components else ""
        return (
            f"# Written by gpuboot\nTypes: deb\nURIs: {self.url}\nSuites: {self.suite}\n"
            f"{components}Architectures: {self.architecture}\nSigned-By: {self.key_path}\n"
        )


def source(name: str, platform: Platform, machine: str, minor: str, settings: Settings) -> Source:
    """The repository that a machine of this platform installs from.

    + name: a key of `settings.mirrors.apt`
    + machine: the kernel's name of the architecture, e.g. x86_64
    + minor: Kubernetes minor, e.g. 1.36: it has one repository for each
    """
    mirror = settings.mirrors.apt.get(name)  # type: ignore[call-overload]
    base = mirror.url if mirror else UPSTREAM[name]
    debian, nvidia = platforms.ARCHITECTURES[machine]
    path, suite, components, key, fingerprint = {
        "docker": (
            f"/{platform.id}", platform.codename, "stable", "/gpg", platforms.DOCKER_KEY
        ),
        "kubernetes": (
            f"/core:/stable:/v{minor}/deb/", "/", "", "Release.key", platforms.KUBERNETES_KEY
        ),
        "cuda": (f"/{platform.cuda}/{nvidia}/", "/", "", *platform.cuda_key),
        "toolkit": (f"/stable/deb/{debian}/", "/", "", "", platforms.TOOLKIT_KEY),
    }[name]  # fmt: skip
    url = base + path
    key_url = f"{base}/gpgkey" if name == "toolkit" else url + key
    own_key = mirror.key_sha256 if mirror else None
    return Source(
        name=name,
        url=url,
        suite=suite,
        components=components,
        architecture=debian,
        key_url=key_url,
        fingerprint="" if own_key else fingerprint,
        key_sha256=own_key or "",
    )
