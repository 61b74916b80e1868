"""The packages of NVIDIA's CUDA repository that make a driver.

Debian and Ubuntu: up to R580 the packages' names carry the branch, and a package pins all of them
to a version. RHEL 9: a module stream chooses the branch (`nvidia-driver:595-open`), and dnf's
versionlock plugin the version. NVIDIA Driver Installation Guide, "Kernel Modules" and "Version
locking".
"""

from datetime import date
from typing import Literal

from gpuboot.config.support import Source
from gpuboot.hosts.platforms import Platform

Flavour = Literal["open", "proprietary"]

SOURCE = Source(date(2026, 11, 9), "NVIDIA Driver Installation Guide 620")
# The last driver branch whose Debian packages carry the branch in their names
_LAST_SUFFIXED_BRANCH = 589
# The last one whose Debian fabric manager does
_LAST_SUFFIXED_FABRIC_MANAGER = 579


def branch(version: str) -> int:
    """The branch of a driver version: 595.91.07 belongs to 595."""
    return int(version.partition(".")[0])


def driver_packages(
    platform: Platform, version: str, flavour: Flavour, fabric_manager: bool
) -> tuple[str, ...]:
    """The packages that make a driver, without versions."""
    driver = "nvidia-open" if flavour == "open" else "cuda-drivers"
    if platform.package_manager == "dnf":
        modules = "kmod-nvidia-open-dkms" if flavour == "open" else "kmod-nvidia-latest-dkms"
        # dnf changes what a metapackage needs only where that is of an exact version
        names = [driver, "nvidia-driver", "nvidia-driver-cuda", modules]
        return (*names, "nvidia-fabricmanager") if fabric_manager else tuple(names)

    def package_name(name: str, last_suffixed: int) -> str:
        return f"{name}-{branch(version)}" if branch(version) <= last_suffixed else name

    packages = [package_name(driver, _LAST_SUFFIXED_BRANCH)]
    if fabric_manager:
        packages.append(package_name("nvidia-fabricmanager", _LAST_SUFFIXED_FABRIC_MANAGER))
    return tuple(packages)


def pinning_package(version: str) -> str:
    """NVIDIA's Debian package that pins every driver package to this version."""
    return f"nvidia-driver-pinning-{version}"


def module_stream(version: str, flavour: Flavour) -> str:
    """The stream of the module nvidia-driver that has this version: `595-open`, `580-dkms`."""
    return f"{branch(version)}-{'open' if flavour == 'open' else 'dkms'}"
