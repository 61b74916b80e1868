"""H100, H200, B200 and GH200: GPUs of Hopper's interface, on an NVLink fabric or without."""

from __future__ import annotations

from tests.populations import sources as s
from tests.populations.common import (
    ECC,
    EVERY_KIND,
    MIG_LACKS,
    NO_EVENTS,
    NO_NVLINK,
    NO_PAGES,
    NVLINK,
    OLD_DRIVER,
    REMAPPED,
    THROTTLED,
    VIDEO,
    framebuffer,
    pcie,
    power,
    profiled,
)
from tests.populations.model import Card, Instance, Pci, Population, Source, lack, values, zero

_SWITCHES = tuple(Pci(f"0000:{bus}:00.0", "0x10de", "0x22a3", "0x068000") for bus in ("07", "08"))
_MARGIN_ONLY = lack(
    "memory's highest temperature is told as a margin",
    Source(f"{s.H100_IDLE.origin}, -q: Memory Max Operating T.Limit Temp"),
    "MEM_MAX_OP_TEMP",
)
_LACKS = (NO_EVENTS, NO_PAGES, _MARGIN_ONLY)
_WELL = (
    zero(s.H100_IDLE, f"{ECC} {REMAPPED} THRESHOLD_SRM MEMORY_UNREPAIRABLE_FLAG"),
    zero(s.H100_IDLE, f"GET_GPU_RECOVERY_ACTION {VIDEO} {THROTTLED}"),
    zero(
        s.HEALTHY,
        f"{NVLINK} NVLINK_BANDWIDTH_TOTAL PROF_NVLINK_TX_BYTES PROF_NVLINK_RX_BYTES "
        "VGPU_LICENSE_STATUS",
    ),
    values(s.ENERGY, TOTAL_ENERGY_CONSUMPTION=4.1e9),
    *EVERY_KIND,
    *profiled(0),
)
_BUSY = profiled(0.97, s.LOADED)

_H100 = (
    values(s.H100_IDLE, GPU_UTIL=0, MEM_COPY_UTIL=0, SM_CLOCK=345, MEM_CLOCK=2619,
           MAX_SM_CLOCK=1980, CLOCKS_EVENT_REASONS=1, GPU_TEMP=41, GPU_TEMP_LIMIT=46,
           MEMORY_TEMP=48, FABRIC_MANAGER_STATUS=3),
    power(s.H100_IDLE, 69.85, 700),
    framebuffer(s.H100_IDLE, 81081, 0, 479),
    pcie(s.H100_IDLE, 5, 5, 16, 16),
    values(Source(f"{s.H100_IDLE.origin}, -q: Replays Since Reset"), PCIE_REPLAY_COUNTER=9),
    *_WELL,
)  # fmt: skip
_H100_LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/mig.capable": "true",
}
H100 = Population(
    "h100-sxm", "H100 SXM (HGX)", "NVIDIA H100 80GB HBM3", "0x2330", "81559", "Disabled",
    "Completed", "590.48.01", (s.H100_IDLE, s.H100_NODE, s.PCI_IDS),
    (Card(0, "GPU-81d79b08-40a0-40ae-3fc5-82b8ff8b8138", "00000000:53:00.0"),
     Card(1, "GPU-4fc48812-c1c8-3bb7-1313-724533aa7df7", "00000000:64:00.0")),
    _H100,
    (values(s.H100_BUSY, GPU_UTIL=100, MEM_COPY_UTIL=11, SM_CLOCK=1980, CLOCKS_EVENT_REASONS=0,
            GPU_TEMP=59, GPU_TEMP_LIMIT=26, MEMORY_TEMP=54, POWER_USAGE=631.95),
     framebuffer(s.H100_BUSY, 61263, 19818, 479), *_BUSY),
    _LACKS, other_devices=_SWITCHES, labels=_H100_LABELS,
)  # fmt: skip

MIG_H100 = Population(
    "mig-h100-mixed", "H100 with MIG, strategy mixed", "NVIDIA H100 80GB HBM3", "0x2330", "81559",
    "Disabled", "Completed", "590.48.01", (s.H100_MIG, s.MIG_MIXED_NODE),
    (Card(0, "GPU-5a1e0100-5157-4c6c-8abc-000000000000", "00000000:00:09.0", (
        Instance("3g.40gb", 2, "MIG-5a1e0100-5157-5c6c-8abc-000000000200"),
        Instance("2g.20gb", 3, "MIG-5a1e0100-5157-5c6c-8abc-000000000300"),
        Instance("1g.10gb", 9, "MIG-5a1e0100-5157-5c6c-8abc-000000000900"),
        Instance("1g.10gb", 10, "MIG-5a1e0100-5157-5c6c-8abc-000000001000"),
    )),),
    _H100,
    (values(s.H100_MIG_BUSY, SM_CLOCK=1980, CLOCKS_EVENT_REASONS=0, GPU_TEMP=53, GPU_TEMP_LIMIT=24,
            MEMORY_TEMP=59, POWER_USAGE=433.78), *_BUSY),
    _LACKS,
    (*MIG_LACKS,
     lack("no framebuffer on instances", s.H100_MIG_NO_FB, "FB_FREE FB_USED FB_RESERVED")),
    strategy="mixed", labels=_H100_LABELS,
)  # fmt: skip

H200 = Population(
    "h200", "H200 SXM", "NVIDIA H200", "0x2335", "143771", "Disabled", "Completed", "590.48.01",
    (s.H200_IDLE, s.PCI_IDS),
    (Card(0, "GPU-5a1e0200-5157-4c6c-8abc-000000000000", "00000000:83:00.0"),),
    (values(s.H200_IDLE, GPU_UTIL=0, MEM_COPY_UTIL=0, SM_CLOCK=345, MEM_CLOCK=3201,
            MAX_SM_CLOCK=1980, CLOCKS_EVENT_REASONS=1, GPU_TEMP=28, GPU_TEMP_LIMIT=59,
            MEMORY_TEMP=32, FABRIC_MANAGER_STATUS=3, PCIE_REPLAY_COUNTER=0),
     power(s.H200_IDLE, 77.71, 700), framebuffer(s.H200_IDLE, 143158, 0, 614),
     pcie(s.H200_IDLE, 5, 5, 16, 16), *_WELL),
    (values(s.H200_BUSY, GPU_UTIL=100, MEM_COPY_UTIL=7, SM_CLOCK=1980, CLOCKS_EVENT_REASONS=0,
            GPU_TEMP=52, GPU_TEMP_LIMIT=35, MEMORY_TEMP=40, POWER_USAGE=627.40),
     framebuffer(s.H200_BUSY, 110796, 32362, 614), *_BUSY),
    _LACKS, other_devices=_SWITCHES,
    labels={"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771",
            "nvidia.com/mig.capable": "true"},
)  # fmt: skip

# The switches of its baseboard are seen as InfiniBand devices of another vendor only.
B200 = Population(
    "b200-hgx", "B200 (HGX)", "NVIDIA B200", "0x2901", "183359", "Disabled", "Completed",
    "575.57.08", (s.B200_SMI, s.B200_FABRIC, s.PCI_IDS),
    (Card(0, "GPU-00261f28-8bd7-afb7-c2d9-897ff3f13706", "00000000:51:00.0"),
     Card(1, "GPU-f538682c-7be3-18c8-91b6-5a3fc69143d0", "00000000:52:00.0")),
    (values(s.B200_SMI, GPU_UTIL=0, GPU_TEMP=27),
     values(s.B200_CLOCK, MAX_SM_CLOCK=1965),
     values(s.HOPPER, MEM_COPY_UTIL=0, SM_CLOCK=120, MEM_CLOCK=3996, CLOCKS_EVENT_REASONS=1,
            GPU_TEMP_LIMIT=60, MEMORY_TEMP=30, FABRIC_MANAGER_STATUS=3, PCIE_REPLAY_COUNTER=0),
     power(s.B200_SMI, 136, 1000), framebuffer(s.B200_SMI, 182642, 0, 717),
     pcie(s.HOPPER, 5, 5, 16, 16), *_WELL),
    (values(s.LOADED, GPU_UTIL=100, MEM_COPY_UTIL=20, SM_CLOCK=1900, CLOCKS_EVENT_REASONS=4,
            GPU_TEMP=70, GPU_TEMP_LIMIT=17, MEMORY_TEMP=72, POWER_USAGE=995), *_BUSY),
    (*_LACKS, lack("NVLink 5 counts elsewhere", s.NVLINK_5, NVLINK)),
    other_devices=tuple(Pci(f"0000:{bus}:00.0", "0x15b3", "0x1021", "0x020700")
                        for bus in ("05", "06")),
    labels={"nvidia.com/gpu.product": "NVIDIA-B200", "nvidia.com/gpu.memory": "183359",
            "nvidia.com/mig.capable": "true"},
)  # fmt: skip

GH200 = Population(
    "gh200", "GH200 (one superchip, no NVSwitch)", "NVIDIA GH200 480GB", "0x2342", "97871",
    "Disabled", "[N/A]", "535.154.05", (s.GH200_SMI, s.GH200_FABRIC, s.GH200_BUS, s.PCI_IDS),
    (Card(0, "GPU-a4f34abc-7715-3560-dcea-7238b9611a45", "00000009:01:00.0"),),
    (values(s.GH200_SMI, GPU_UTIL=2, GPU_TEMP=38),
     values(s.HOPPER, MEM_COPY_UTIL=0, SM_CLOCK=345, MEM_CLOCK=2619, MAX_SM_CLOCK=1980,
            CLOCKS_EVENT_REASONS=1, GPU_TEMP_LIMIT=49, MEMORY_TEMP=40, PCIE_REPLAY_COUNTER=0),
     zero(s.NO_FABRIC, "FABRIC_MANAGER_STATUS"),
     power(s.GH200_SMI, 106, 900), framebuffer(s.GH200_SMI, 97391, 1, 479), *_WELL),
    (values(s.LOADED, GPU_UTIL=100, MEM_COPY_UTIL=20, SM_CLOCK=1755, CLOCKS_EVENT_REASONS=4,
            GPU_TEMP=66, GPU_TEMP_LIMIT=21, MEMORY_TEMP=70, POWER_USAGE=690), *_BUSY),
    (*_LACKS, NO_NVLINK, OLD_DRIVER,
     lack("no PCIe link of the usual kind", s.UNKNOWN,
          "PCIE_LINK_GEN PCIE_MAX_LINK_GEN PCIE_LINK_WIDTH PCIE_MAX_LINK_WIDTH")),
    flavour="Open Kernel Module for aarch64",
    other_devices=(Pci("0018:00:00.0", "0x10de", "0x22b1", "0x060400"),),
    labels={"nvidia.com/gpu.product": "NVIDIA-GH200-480GB", "nvidia.com/gpu.memory": "97871",
            "nvidia.com/mig.capable": "true", "kubernetes.io/arch": "arm64"},
)  # fmt: skip

POPULATIONS = (H100, MIG_H100, H200, B200, GH200)
