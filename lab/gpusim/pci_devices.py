"""The simulated hardware of a machine: GPUs and other PCI devices that exist before any driver.

Linux shows PCI devices as folders of small files under /sys/bus/pci/devices. A machine gets such
a tree of its own, which a unit binds over the kernel's early in the boot, so that lspci, Node
Feature Discovery and the product see this machine's devices and not the host's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

HARDWARE_DIR = Path(__file__).parent / "hardware"
STATE_DIR = "var/lib/gpu-sim"
NVIDIA = 0x10DE
CLASS_3D = 0x030200
CLASS_NVSWITCH = 0x068000
MAX_GPUS = 16

# PCI device id, memory in MiB and power limit in W by product name. Sources: pci.ids and the
# products' data sheets; H100 memory as nvidia-smi prints it.
MODELS: dict[str, tuple[int, int, int]] = {
    "NVIDIA H100 80GB HBM3": (0x2330, 81559, 700),
    "NVIDIA H200": (0x2335, 143771, 700),
}


@dataclass(frozen=True)
class PciDevice:
    """A function on the PCI bus. `slot` is domain:bus:device.function, `class_id` 24 bits."""

    slot: str
    vendor: int
    device: int
    class_id: int
    subsystem_vendor: int
    subsystem_device: int
    revision: int = 0
    numa_node: int = 0


# What a server has besides GPUs: host bridge, network card, disk controller and the screen of its
# management controller (a VGA device that is no GPU to compute on).
SERVER_DEVICES = (
    PciDevice("0000:00:00.0", 0x8086, 0x09A2, 0x060000, 0x15D9, 0x1C1D),
    PciDevice("0000:01:00.0", 0x15B3, 0x101D, 0x020000, 0x15B3, 0x0016),
    PciDevice("0000:02:00.0", 0x144D, 0xA80A, 0x010802, 0x144D, 0xA801),
    PciDevice("0000:03:00.0", 0x1A03, 0x2000, 0x030000, 0x15D9, 0x1C1D, revision=0x52),
)


def gpu_uuid(seed: int, index: int) -> str:
    """The UUID of GPU `index` on the machine whose seed is `seed` (32 bits)."""
    return f"GPU-{seed:08x}-5157-4c6c-8abc-{index:012x}"


def pci_devices(count: int, device_id: int, nvswitches: int = 0) -> list[PciDevice]:
    """The PCI devices of a machine with `count` GPUs; bus ids as the simulated NVML gives them."""
    gpus = [
        PciDevice(
            f"0000:{0x10 + 0x0C * index:02x}:00.0",
            NVIDIA,
            device_id,
            CLASS_3D,
            NVIDIA,
            0x16C1,
            revision=0xA1,
            numa_node=index // 4,
        )
        for index in range(count)
    ]
    switches = [
        PciDevice(f"0000:{5 + n:02x}:00.0", NVIDIA, 0x22A3, CLASS_NVSWITCH, NVIDIA, 0x1796)
        for n in range(nvswitches)
    ]
    return [*SERVER_DEVICES, *switches, *gpus]


def install_pci_devices(
    root: Path,
    count: int,
    seed: int,
    model: str = "NVIDIA H100 80GB HBM3",
    *,
    nvswitches: int = 0,
) -> None:
    """Put `count` simulated GPUs into the machine whose root folder is `root`.

    `seed` (32 bits) makes the UUIDs differ between machines. With `nvswitches` the machine has
    that many NVSwitches, and CUDA waits for a fabric manager. With `count` 0 it has the other PCI
    devices of a server only. Raises `ValueError` for a count or model that is not simulated.
    """
    if not 0 <= count <= MAX_GPUS:
        raise ValueError(f"0 to {MAX_GPUS} GPUs can be simulated, not {count}")
    if model not in MODELS:
        raise ValueError(f"no such simulated GPU: {model} (there are: {', '.join(MODELS)})")
    state = root / STATE_DIR
    state.mkdir(parents=True, exist_ok=True)
    (state / "hardware.conf").write_text(_hardware_conf(count, seed, model, nvswitches))
    for device in pci_devices(count, MODELS[model][0], nvswitches):
        _write_device(state / "pci" / device.slot, device)
    _install(root, "gpu-sim", "usr/bin", 0o755)
    _install(root, "power-on", "usr/lib/gpu-sim", 0o755)
    _install(root, "gpu-sim-pci.service", "etc/systemd/system", 0o644)
    link = root / "etc/systemd/system/sysinit.target.wants/gpu-sim-pci.service"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to("/etc/systemd/system/gpu-sim-pci.service")


def _hardware_conf(count: int, seed: int, model: str, nvswitches: int) -> str:
    device_id, memory_mib, power_limit_w = MODELS[model]
    facts: dict[str, object] = {
        "count": count,
        "name": model,
        "memory_mib": memory_mib,
        "power_limit_w": power_limit_w,
        "compute_capability": 90,
        "pci_device_id": f"{device_id:#06x}",
        "uuid_seed": f"{seed & 0xFFFFFFFF:#010x}",
        "nvswitches": nvswitches,
    }
    return "".join(f"{key} = {value}\n" for key, value in facts.items())


def _write_device(folder: Path, device: PciDevice) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = _config_space(device)
    (folder / "config").write_bytes(config)
    if device.class_id == CLASS_3D:
        (folder / "config.present").write_bytes(config)  # to come back to after a "lost" GPU
    bars = "".join(f"{0:#018x} {0:#018x} {0:#018x}\n" for _ in range(13))
    bus = int(device.slot.split(":")[1], 16)
    texts = {
        "vendor": f"{device.vendor:#06x}",
        "device": f"{device.device:#06x}",
        "class": f"{device.class_id:#08x}",
        "subsystem_vendor": f"{device.subsystem_vendor:#06x}",
        "subsystem_device": f"{device.subsystem_device:#06x}",
        "revision": f"{device.revision:#04x}",
        "numa_node": str(device.numa_node),
        "irq": str(bus),
        "enable": "1",
        "local_cpulist": "0-1",
        "current_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
        "modalias": _modalias(device),
        "uevent": _uevent(device),
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")
    (folder / "resource").write_text(bars)


def _modalias(device: PciDevice) -> str:
    base, sub, interface = device.class_id.to_bytes(3, "big")
    return (
        f"pci:v{device.vendor:08X}d{device.device:08X}"
        f"sv{device.subsystem_vendor:08X}sd{device.subsystem_device:08X}"
        f"bc{base:02X}sc{sub:02X}i{interface:02X}"
    )


def _uevent(device: PciDevice) -> str:
    return (
        f"PCI_CLASS={device.class_id:X}\n"
        f"PCI_ID={device.vendor:04X}:{device.device:04X}\n"
        f"PCI_SUBSYS_ID={device.subsystem_vendor:04X}:{device.subsystem_device:04X}\n"
        f"PCI_SLOT_NAME={device.slot}\nMODALIAS={_modalias(device)}"
    )


def _config_space(device: PciDevice) -> bytes:
    """The first 256 bytes of configuration: header type 0, no capabilities, no base addresses."""
    space = bytearray(256)
    struct.pack_into("<HHHH", space, 0x00, device.vendor, device.device, 0x0006, 0)
    base, sub, interface = device.class_id.to_bytes(3, "big")
    struct.pack_into("<BBBB", space, 0x08, device.revision, interface, sub, base)
    struct.pack_into("<HH", space, 0x2C, device.subsystem_vendor, device.subsystem_device)
    return bytes(space)


def _install(root: Path, name: str, folder: str, mode: int) -> None:
    target = root / folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes((HARDWARE_DIR / name).read_bytes())
    target.chmod(mode)
