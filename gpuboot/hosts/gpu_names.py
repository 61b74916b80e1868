"""Product names of NVIDIA GPUs by PCI device id, for people who read them.

Only data-centre and workstation cards that servers hold; others are called by their generation.
Source: the PCI id database (pciutils/pciids@c1c1254, pci.ids, vendor 10de).
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from gpuboot.hosts.gpu_models import generation

NAMES: Mapping[int, str] = {
    0x15F7: "P100 PCIe 12GB",
    0x15F8: "P100 PCIe 16GB",
    0x15F9: "P100 SXM2 16GB",
    0x1B38: "P40",
    0x1BB3: "P4",
    0x1DB1: "V100 SXM2 16GB",
    0x1DB4: "V100 PCIe 16GB",
    0x1DB5: "V100 SXM2 32GB",
    0x1DB6: "V100 PCIe 32GB",
    0x1DB8: "V100 SXM3 32GB",
    0x1DF6: "V100S PCIe 32GB",
    0x1EB8: "T4",
    0x20B0: "A100 SXM4 40GB",
    0x20B1: "A100 PCIe 40GB",
    0x20B2: "A100 SXM4 80GB",
    0x20B3: "A100 SXM 64GB",
    0x20B5: "A100 PCIe 80GB",
    0x20B7: "A30 PCIe",
    0x20F1: "A100 PCIe 40GB",
    0x20F3: "A800 SXM4 80GB",
    0x20F5: "A800 PCIe 80GB",
    0x2204: "GeForce RTX 3090",
    0x2230: "RTX A6000",
    0x2231: "RTX A5000",
    0x2235: "A40",
    0x2236: "A10",
    0x2237: "A10G",
    0x2321: "H100 NVL 94GB",
    0x2322: "H800 PCIe",
    0x2324: "H800",
    0x2329: "H20",
    0x2330: "H100 SXM5 80GB",
    0x2331: "H100 PCIe",
    0x2335: "H200 SXM 141GB",
    0x2336: "H100",
    0x2337: "H100 SXM5 64GB",
    0x2338: "H100 SXM5 96GB",
    0x2339: "H100 SXM5 94GB",
    0x233B: "H200 NVL",
    0x2342: "GH200 120GB / 480GB",
    0x2348: "GH200 144G HBM3e",
    0x25B6: "A2 / A16",
    0x2684: "GeForce RTX 4090",
    0x26B1: "RTX 6000 Ada Generation",
    0x26B5: "L40",
    0x26B9: "L40S",
    0x27B8: "L4",
    0x2901: "B200",
    0x2941: "GB200",
    0x2B85: "GeForce RTX 5090",
    0x2BB1: "RTX PRO 6000 Blackwell Workstation Edition",
    0x2BB4: "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    0x2BB5: "RTX PRO 6000 Blackwell Server Edition",
    0x3182: "B300 SXM6",
    0x31C2: "GB300",
}


def name(device: int) -> str:
    """How people call a GPU: `H100 SXM5 80GB`, else `Hopper GPU 10de:2399`.

    + device: its PCI device id
    """
    return NAMES.get(device) or f"{generation(device).name} GPU 10de:{device:04x}"


def summary(devices: Iterable[int]) -> str:
    """The GPUs of a machine by model: `8 x H100 SXM5 80GB`, or `no GPU`."""
    counts = Counter(name(device) for device in devices)
    return ", ".join(f"{count} x {model}" for model, count in counts.items()) or "no GPU"
