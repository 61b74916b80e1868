"""The one table of operating systems, and the names that publishers give to each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpuboot.hosts.node_state import NodeState

Flavour = Literal["open", "proprietary"]
PackageManager = Literal["apt"]

# The last driver branch whose packages carry the branch in their names (NVIDIA driver guide)
LAST_SUFFIXED_BRANCH = 589

# OpenPGP fingerprints of the publishers' repository keys
CUDA_KEY = "EB693B3035CD5710E231E123A4B469963BF863CC"
CUDA_KEY_2025 = "02182E60104FCDC26EAE1B8597A5D4CB8793F200"
DOCKER_KEY = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"
KUBERNETES_KEY = "DE15B14486CD377B9E876E1A234654DA9A296436"
TOOLKIT_KEY = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"


@dataclass(frozen=True)
class Platform:
    """An operating system release that gpuboot supports.

    + id, version: ID and VERSION_ID of /etc/os-release
    + cuda: its folder in NVIDIA's CUDA repository
    + cuda_key: file name and fingerprint of that folder's key
    + package_manager: the program that installs its packages
    """

    id: str
    version: str
    codename: str
    cuda: str
    cuda_key: tuple[str, str]
    package_manager: PackageManager = "apt"

    @property
    def name(self) -> str:
        """How people call it: `Ubuntu 24.04`."""
        return f"{self.id.capitalize()} {self.version}"


_OLD_KEY = ("3bf863cc.pub", CUDA_KEY)
PLATFORMS: tuple[Platform, ...] = (
    Platform("ubuntu", "22.04", "jammy", "ubuntu2204", _OLD_KEY),
    Platform("ubuntu", "24.04", "noble", "ubuntu2404", _OLD_KEY),
    Platform("debian", "12", "bookworm", "debian12", _OLD_KEY),
    # apt of Debian 13 refuses the old key's SHA-1 signature; this folder has a key of its own
    Platform(
        "debian",
        "13",
        "trixie",
        "debian13",
        ("8793F200.pub", CUDA_KEY_2025),
    ),
)
# machine name of the kernel -> (Debian's name, NVIDIA's folder)
ARCHITECTURES: Mapping[str, tuple[str, str]] = {
    "x86_64": ("amd64", "x86_64"),
    "aarch64": ("arm64", "sbsa"),
}


def find(state: NodeState) -> Platform | None:
    """The platform of a machine; None when gpuboot does not support it."""
    for platform in PLATFORMS:
        if (platform.id, platform.version) == (state.os_id, state.os_version):
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


def branch(version: str) -> int:
    """The branch of a driver version: 595.91.07 belongs to 595."""
    return int(version.partition(".")[0])


def driver_packages(version: str, flavour: Flavour, fabric_manager: bool) -> tuple[str, ...]:
    """The packages of NVIDIA's repository that make a driver, without versions.

    Up to R580 names carry the branch, except the fabric manager's, which lost it with R580.
    """
    suffix = f"-{branch(version)}" if branch(version) <= LAST_SUFFIXED_BRANCH else ""
    packages = [("nvidia-open" if flavour == "open" else "cuda-drivers") + suffix]
    if fabric_manager:
        old = branch(version) < 580
        packages.append("nvidia-fabricmanager" + (f"-{branch(version)}" if old else ""))
    return tuple(packages)


def pinning_package(version: str) -> str:
    """NVIDIA's package that pins every driver package to this version by apt preferences."""
    return f"nvidia-driver-pinning-{version}"
