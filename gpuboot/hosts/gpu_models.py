"""NVIDIA GPU generations by PCI device id, and which kernel modules each can use.

Ranges are those of the PCI id database: NVIDIA gives each chip a block of 64 or 128 ids. Which
modules a driver has: NVIDIA Driver Installation Guide, "Proprietary Kernel Modules Removed".
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import date

from gpuboot.config.support import Source
from gpuboot.config.versions import DriverLock
from gpuboot.hosts.driver_packages import Flavour, branch

SOURCE = Source(date(2026, 11, 9), "NVIDIA Driver Installation Guide 620, and the PCI id database")


@dataclass(frozen=True)
class Generation:
    """A GPU architecture: `open_modules`: never (older than Turing), may, or must be open."""

    name: str
    first: int
    open_modules: str


# first id of each block of ids; a device belongs to the last block that starts at or before it
_BLOCKS = (
    Generation("older than Maxwell", 0x0000, "unsupported"),
    Generation("Maxwell", 0x1340, "never"),
    Generation("Pascal", 0x15F0, "never"),
    Generation("Maxwell", 0x1600, "never"),
    Generation("Pascal", 0x1B00, "never"),
    Generation("Volta", 0x1D80, "never"),
    Generation("Turing", 0x1E00, "may"),
    Generation("Ampere", 0x2080, "may"),
    Generation("Turing", 0x2180, "may"),
    Generation("Ampere", 0x2200, "may"),
    Generation("Hopper", 0x2300, "may"),
    Generation("Grace Hopper", 0x2340, "must"),
    Generation("Hopper", 0x2380, "may"),
    Generation("Ampere", 0x2400, "may"),
    Generation("Ada", 0x2600, "may"),
    Generation("Blackwell or newer", 0x2900, "must"),
)
# the first driver branch that has open modules alone
OPEN_ONLY_BRANCH = 615


def generation(device: int) -> Generation:
    """The generation of a GPU. + device: its PCI device id, e.g. 0x2330 (H100 SXM)"""
    return max((block for block in _BLOCKS if block.first <= device), key=lambda b: b.first)


def can_divide(device: int) -> bool:
    """Whether a GPU's chip may have MIG: A100 and its like, Hopper, Blackwell and what is newer.

    + device: its PCI device id
    """
    name = generation(device).name
    return name in ("Hopper", "Grace Hopper", "Blackwell or newer") or (
        name == "Ampere" and device < 0x2180  # the block of GA100
    )


class FlavourError(ValueError):
    """No kernel module flavour fits; the text is (cause, remedy)."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.cause, self.remedy = cause, remedy


def flavour(
    devices: Iterable[int], modules: str, driver: DriverLock, oldest_branch: int = 0
) -> Flavour:
    """The kernel modules, open or proprietary, that drive these GPUs.

    + devices: PCI device ids of a machine's GPUs
    + modules: `settings.driver.modules`
    + driver: the version to install, and the last one for old GPUs
    + oldest_branch: the first branch that the platform's repository has (`Platform.oldest_driver`)

    Raises `FlavourError` when GPUs, setting, driver and platform do not go together.
    """
    generations = [generation(device) for device in devices]
    names = ", ".join(sorted({item.name for item in generations}))
    needs = {item.open_modules for item in generations}
    if "unsupported" in needs:
        raise FlavourError(
            f"has GPUs that no supported driver knows ({names})", "take them out of the machine"
        )
    if {"never", "must"} <= needs:
        raise FlavourError(
            f"mixes GPUs that need open and proprietary kernel modules ({names})",
            "a machine has one driver: separate them",
        )
    if "never" in needs:
        _check_legacy(names, modules, driver, oldest_branch)
        return "proprietary"
    if branch(driver.version) < oldest_branch:
        raise FlavourError(
            f"NVIDIA's repository for this system has no driver before branch {oldest_branch}, and "
            f"{driver.version} is requested",
            "leave driver.version out, or name a version of a newer branch",
        )
    if modules == "proprietary":
        _check_proprietary(names, needs, driver.version)
        return "proprietary"
    return "open"


def _check_legacy(names: str, modules: str, driver: DriverLock, oldest_branch: int) -> None:
    """Raise `FlavourError` where GPUs that know no open modules get no driver."""
    last = branch(driver.last_legacy)
    if last < oldest_branch:
        raise FlavourError(
            f"{names} needs driver branch {last} or older, and NVIDIA's repository for this system "
            f"begins with branch {oldest_branch}",
            "install Ubuntu 22.04, Ubuntu 24.04 or Debian 12 on the machine, or take the GPUs out",
        )
    if modules == "open":
        raise FlavourError(f"open kernel modules know no {names}", 'set driver.modules = "auto"')
    if branch(driver.version) > last:
        raise FlavourError(
            f"driver branch {branch(driver.version)} has dropped {names}",
            f'set driver.version = "{driver.last_legacy}", or another of its branch',
        )


def _check_proprietary(names: str, needs: Set[str], version: str) -> None:
    """Raise `FlavourError` where driver.modules = "proprietary" cannot be had."""
    if "must" in needs:
        raise FlavourError(f"{names} needs the open kernel modules", 'set driver.modules = "auto"')
    if branch(version) >= OPEN_ONLY_BRANCH:
        raise FlavourError(
            f'driver.modules is "proprietary", and driver {version} has open kernel modules alone, '
            f"as all have from branch {OPEN_ONLY_BRANCH} on",
            'set driver.modules = "auto", or a driver.version of an earlier branch',
        )
