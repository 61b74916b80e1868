"""The one table of operating systems, and the names that publishers give to each of them.

Rocky Linux and RHEL: NVIDIA's Driver Installation Guide (rhel9 repository, DKMS from EPEL), and
Docker's "Install Docker Engine on RHEL". Ubuntu 26.04: NVIDIA's ubuntu2604 repository has a key of
its own (Azure/AgentBaker#8782) and no driver before R595. Nobody has run gpuboot on these three
yet: they are experimental.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from gpuboot.config.support import Source
from gpuboot.hosts.node_state import NodeState

PackageManager = Literal["apt", "dnf"]

# OpenPGP fingerprints of the publishers' repository keys
CUDA_KEY = "EB693B3035CD5710E231E123A4B469963BF863CC"
CUDA_KEY_2025 = "02182E60104FCDC26EAE1B8597A5D4CB8793F200"
CUDA_KEY_UBUNTU_26 = "14BAFBC7562AD710CA04E69905FBB6DA60DF8A40"
CUDA_RPM_KEY = "610C7B14E068A878070DA4E99CD0A493D42D0685"
DOCKER_KEY = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"
DOCKER_RPM_KEY = "060A61C51B558A7F742B77AAC52FEB6B621E9F35"
KUBERNETES_KEY = "DE15B14486CD377B9E876E1A234654DA9A296436"
TOOLKIT_KEY = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"

# Debian's names -> Red Hat's. curl: RHEL's own packages conflict (curl, curl-minimal), and each
# system has one of them.
_RPM_NAMES: Mapping[str, tuple[str, ...]] = {
    "conntrack": ("conntrack-tools",),
    "curl": (),
    "gnupg": ("gnupg2",),
    "iproute2": ("iproute", "iproute-tc"),
    "iptables": ("iptables-nft",),
    "openssh-client": ("openssh-clients",),
}
# how names of packages begin -> the epoch of their Debian versions; rpm's are asked without
_EPOCHS = {"docker-ce": "5:", "datacenter-gpu-manager": "1:"}


@dataclass(frozen=True)
class Platform:
    """An operating system release that gpuboot supports.

    + id, version: ID and VERSION_ID of /etc/os-release; of a VERSION_ID like 9.6 the 9 counts
    + cuda: its folder in NVIDIA's CUDA repository
    + cuda_key: file name and fingerprint of that folder's key
    + package_manager: the program that installs its packages
    + experimental: nobody has run gpuboot on it yet
    + oldest_driver: the first driver branch that the CUDA folder has; 0: older than all in use
    """

    id: str
    version: str
    codename: str
    cuda: str
    cuda_key: tuple[str, str]
    package_manager: PackageManager = "apt"
    experimental: bool = False
    oldest_driver: int = 0

    @property
    def name(self) -> str:
        """How people call it: `Ubuntu 24.04`."""
        label = {"rhel": "RHEL", "rocky": "Rocky Linux"}.get(self.id, self.id.capitalize())
        return f"{label} {self.version}"

    def package_names(self, names: Iterable[str]) -> list[str]:
        """What packages are called here. + names: Debian's names"""
        if self.package_manager == "apt":
            return list(names)
        packages = [package for name in names for package in _RPM_NAMES.get(name, (name,))]
        return [*packages, "python3-dnf-plugin-versionlock"]

    def version_pattern(self, package: str, version: str) -> str:
        """Any build of a version of a package; some publishers' Debian packages have an epoch."""
        epochs = [epoch for begins, epoch in _EPOCHS.items() if package.startswith(begins)]
        epoch = epochs[0] if epochs and self.package_manager == "apt" else ""
        return f"{epoch}{version}-*"

    @property
    def distribution_runtimes(self) -> tuple[str, ...]:
        """The distribution's own packages that Docker's containerd.io replaces, by dnf.

        Docker's documentation, "Uninstall old versions". apt is asked:
        `gpuboot.hosts.package_rehearsal`.
        """
        return () if self.package_manager == "apt" else ("runc",)

    @property
    def distribution_docker(self) -> tuple[str, ...]:
        """The distribution's own packages that Docker's replace or refuse to stand beside.

        apt knows no conflict of these with docker-compose-plugin: dpkg stops at a file of both.
        """
        if self.package_manager == "apt":
            return ("docker-compose", "docker-compose-v2")
        return (*self.distribution_runtimes, "podman-docker")

    @property
    def remove_command(self) -> str:
        """The command by which a person removes packages."""
        return "apt-get remove" if self.package_manager == "apt" else "dnf remove"


SOURCE = Source(date(2026, 8, 21), "NVIDIA/holodeck, NVIDIA/gpu-driver-container, kubernetes.io")
_OLD_KEY = ("3bf863cc.pub", CUDA_KEY)
_RPM_KEY = ("D42D0685.pub", CUDA_RPM_KEY)
PLATFORMS: tuple[Platform, ...] = (
    Platform("ubuntu", "22.04", "jammy", "ubuntu2204", _OLD_KEY),
    Platform("ubuntu", "24.04", "noble", "ubuntu2404", _OLD_KEY),
    Platform(
        "ubuntu",
        "26.04",
        "resolute",
        "ubuntu2604",
        ("60DF8A40.pub", CUDA_KEY_UBUNTU_26),
        experimental=True,
        oldest_driver=595,
    ),
    Platform("debian", "12", "bookworm", "debian12", _OLD_KEY),
    # apt of Debian 13 refuses the old key's SHA-1 signature; this folder has a key of its own
    Platform(
        "debian",
        "13",
        "trixie",
        "debian13",
        ("8793F200.pub", CUDA_KEY_2025),
        oldest_driver=590,  # NVIDIA/cuda-repo-management#38
    ),
    Platform("rocky", "9", "", "rhel9", _RPM_KEY, "dnf", experimental=True),
    Platform("rhel", "9", "", "rhel9", _RPM_KEY, "dnf", experimental=True),
)
# machine name of the kernel -> (Debian's name, NVIDIA's folder)
ARCHITECTURES: Mapping[str, tuple[str, str]] = {
    "x86_64": ("amd64", "x86_64"),
    "aarch64": ("arm64", "sbsa"),
}


def find(state: NodeState) -> Platform | None:
    """The platform of a machine; None when gpuboot does not support it."""
    for platform in PLATFORMS:
        versions = (state.os_version, state.os_version.partition(".")[0])
        if platform.id == state.os_id and platform.version in versions:
            return platform
    return None


class UnsupportedPlatformError(ValueError):
    """A machine runs a system that gpuboot does not support."""


def of(state: NodeState) -> Platform:
    """The platform of a machine that preflight has let through.

    Raises `UnsupportedPlatformError` for any other.
    """
    platform = find(state)
    if platform is None:
        raise UnsupportedPlatformError(state.os_name or "an unknown system")
    return platform
