"""MIG layouts on Docker hosts: what a host's GPUs are divided into, and the program that does it.

NVIDIA's mig-parted, which does it in a cluster, is in none of the repositories that gpuboot uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts import mig_profiles, sharing
from gpuboot.hosts.mig_profiles import Card
from gpuboot.templates import TEMPLATES, render

PROGRAM = "/usr/local/sbin/gpuboot-mig"
LAYOUT = "/etc/gpuboot/mig-layout"
UNIT = "gpuboot-mig.service"
_HEAD = "# Written by gpuboot: index of a GPU, profiles of its instances; none: MIG is off\n"


def layout(node: Node, settings: Settings, devices: Sequence[int]) -> str:
    """The text of the program's file for a host; "" where the settings leave its layout alone.

    + devices: PCI device ids of its GPUs, in the order in which nvidia-smi numbers them
    """
    share = sharing.of(node, settings)
    if share is None or share.mig is None or not node.gpus:
        return ""
    wanted = sharing.per_gpu(share.mig, settings, node.gpus, devices)
    cards = [mig_profiles.card(device) for device in devices]
    cards += [None] * (len(wanted) - len(cards))
    lines = (
        " ".join([str(index), *_ordered(instances, card)]) + "\n"
        for index, (instances, card) in enumerate(zip(wanted, cards, strict=False))
    )
    return _HEAD + "".join(lines)


def _ordered(instances: Mapping[str, int], card: Card | None) -> list[str]:
    """Profiles as often as they are wanted, in the order in which all of them find their place.

    The largest come first, as mig-parted makes them: a small instance may stand where alone a
    larger one could.
    """

    def size(name: str) -> tuple[int, int, str]:
        profile = card.profile(name) if card else None
        return (-profile.memory, -profile.compute, name) if profile else (0, 0, name)

    return [name for name in sorted(instances, key=size) for _ in range(instances[name])]


def program() -> str:
    """The program that divides the GPUs: a shell script, as it stands (Docker has braces too)."""
    return (TEMPLATES / "mig/gpuboot-mig.sh").read_text()


def files(text: str) -> dict[str, str]:
    """Path -> text of what the program reads and of its unit. + text: of the layout"""
    return {
        LAYOUT: text,
        f"/etc/systemd/system/{UNIT}": render("mig/gpuboot-mig.service.j2", program=PROGRAM),
    }
