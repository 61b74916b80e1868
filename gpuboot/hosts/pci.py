"""NVIDIA functions on a machine's PCI bus."""

from collections.abc import Mapping
from dataclasses import dataclass

NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")  # VGA controller, 3D controller
SWITCH_CLASS = "0x0680"  # other bridge: NVSwitch


@dataclass(frozen=True)
class PciDevice:
    """An NVIDIA function on the PCI bus. `device` is its id (e.g. 0x2330), `kind` its class.

    + driver: the kernel driver that it is bound to; "" for none
    + virtual: it is a virtual function (SR-IOV) of another one on this host
    + uuid: of a GPU, as the loaded NVIDIA driver has it; "" where it has none
    """

    slot: str
    device: int
    kind: str
    driver: str = ""
    virtual: bool = False
    uuid: str = ""


def parse(item: str, uuids: Mapping[str, str]) -> PciDevice:
    """A function as the compound fact prints it. + uuids: of GPUs, by PCI address"""
    slot, device, kind, function, driver = (*item.split(), "", "")[:5]
    uuid = uuids.get(slot, "")
    return PciDevice(
        slot, int(device, 16), kind, driver, function == "virtual", "" if "?" in uuid else uuid
    )
