"""MIG layouts on Docker hosts: what a host's GPUs are divided into, and the program that does it.

NVIDIA's mig-parted, which does it in a cluster, is in none of the repositories that gpuboot uses.
"""

from collections.abc import Mapping, Sequence

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts import gpu_sharing, mig_profiles
from gpuboot.hosts.driver_mig import DriverProfiles
from gpuboot.templates import TEMPLATES, render

PROGRAM = "/usr/local/sbin/gpuboot-mig"
LAYOUT = "/etc/gpuboot/mig-layout"
UNIT = "gpuboot-mig.service"
_HEAD = "# Written by gpuboot: index of a GPU, profiles of its instances; none: MIG is off\n"


def layout(
    node: Node, settings: Settings, devices: Sequence[int], driver: DriverProfiles | None = None
) -> str:
    """The text of the program's file for a host; "" where the settings leave its layout alone.

    + devices: PCI device ids of its GPUs, in the order in which nvidia-smi numbers them
    + driver: the MIG profiles that its driver has, where that was asked

    Of a GPU whose profiles nobody knows before the driver runs, the file has the layout's name: the
    program asks the driver.
    """
    share = gpu_sharing.of(node, settings)
    if share is None or share.mig is None or not node.gpus:
        return ""
    gpu_counts = gpu_sharing.per_gpu(share.mig, settings, node.gpus, devices, driver)
    lines = (
        " ".join([str(index), *([share.mig] if counts is None else _ordered(counts))]) + "\n"
        for index, counts in enumerate(gpu_counts)
    )
    return _HEAD + "".join(lines)


def _ordered(instances: Mapping[str, int]) -> list[str]:
    """Profiles as often as they are wanted, in the order in which all of them find their place.

    The largest come first, as mig-parted makes them: a small instance may stand where alone a
    larger one could.
    """

    def place(name: str) -> tuple[int, int, str]:
        compute, gigabytes = mig_profiles.size(name)
        return -gigabytes, -compute, name

    return [name for name in sorted(instances, key=place) for _ in range(instances[name])]


def program() -> str:
    """The program that divides the GPUs: a shell script, as it stands (Docker has braces too)."""
    return (TEMPLATES / "mig/gpuboot-mig.sh").read_text()


def files(text: str) -> dict[str, str]:
    """Path -> text of what the program reads and of its unit. + text: of the layout"""
    return {
        LAYOUT: text,
        f"/etc/systemd/system/{UNIT}": render("mig/gpuboot-mig.service.j2", program=PROGRAM),
    }
