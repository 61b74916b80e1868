"""A100 with MIG, and the A10G of AWS."""

from __future__ import annotations

from tests.populations import sources as s
from tests.populations.common import (
    ECC,
    EVERY_KIND,
    MIG_LACKS,
    NO_EVENTS,
    NO_NVLINK,
    NO_PAGES,
    NO_TLIMIT,
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
from tests.populations.model import Card, Instance, Pci, Population, lack, values, zero

_PROPRIETARY = "x86_64 Kernel Module"
_SWITCHES = tuple(
    Pci(f"{domain}:00:00.0", "0x10de", "0x1af1", "0x068000")
    for domain in ("0005", "0006", "0007", "0008", "0009", "000a")
)
_WELL = (
    zero(s.A100_SMI, f"{ECC} PCIE_REPLAY_COUNTER CLOCKS_EVENT_REASONS"),
    zero(s.HEALTHY, f"{REMAPPED} THRESHOLD_SRM MEMORY_UNREPAIRABLE_FLAG VGPU_LICENSE_STATUS"),
    zero(s.HEALTHY, f"{NVLINK} NVLINK_BANDWIDTH_TOTAL PROF_NVLINK_TX_BYTES PROF_NVLINK_RX_BYTES"),
    zero(s.HEALTHY, f"{THROTTLED} {VIDEO} GPU_UTIL MEM_COPY_UTIL"),
    zero(s.NO_FABRIC, "FABRIC_MANAGER_STATUS"),
    values(s.ENERGY, TOTAL_ENERGY_CONSUMPTION=2.2e9),
    *EVERY_KIND,
)
_A100_CLOCKS = values(s.A100_SMI, SM_CLOCK=1275, MEM_CLOCK=1593, MAX_SM_CLOCK=1410)
_A100_BUSY = (
    values(s.LOADED, SM_CLOCK=1410, GPU_TEMP=55, MEMORY_TEMP=60, POWER_USAGE=390, GPU_UTIL=100),
    *profiled(0.9, s.LOADED),
)
_LACKS = (NO_EVENTS, NO_PAGES, NO_TLIMIT, OLD_DRIVER)

MIG_SINGLE = Population(
    "mig-a100-single", "A100 with MIG, strategy single", "NVIDIA A100-SXM4-80GB", "0x20b2",
    "81920", "Disabled", "[N/A]", "535.54.03", (s.A100_SMI, s.MIG_SINGLE_NODE),
    (Card(0, "GPU-513536b6-7d19-9063-b049-1e69664bb298", "00000000:01:00.0", tuple(
        Instance("1g.20gb", gi, f"MIG-5a1e0300-5157-5c6c-8abc-00000000000{gi}", (19955, 12, 0))
        for gi in (3, 4, 5, 6)
    )),),
    (_A100_CLOCKS, values(s.A100_SMI, GPU_TEMP=27, MEMORY_TEMP=44, MEM_MAX_OP_TEMP=95),
     power(s.A100_SMI, 67.03, 500), framebuffer(s.A100_SMI, 80999, 50, 869),
     pcie(s.A100_SMI, 4, 4, 16, 16), *_WELL, *profiled(0)),
    _A100_BUSY, _LACKS, MIG_LACKS, flavour=_PROPRIETARY, strategy="single",
    labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.20gb",
            "nvidia.com/gpu.memory": "19968", "nvidia.com/mig.capable": "true"},
)  # fmt: skip

# Three of the node's eight: cut evenly, cut unevenly, and whole.
MIG_MIXED = Population(
    "mig-a100-mixed", "A100 with MIG, strategy mixed, one GPU whole", "NVIDIA A100-SXM4-80GB",
    "0x20b2", "81920", "Disabled", "[N/A]", "535.54.03",
    (s.A100_MIXED, s.A100_BUS, s.A100_SMI, s.MIG_MIXED_NODE),
    (
        Card(0, "GPU-5a1e0400-5157-4c6c-8abc-000000000000", "00000001:00:00.0", tuple(
            Instance("1g.10gb", gi, f"MIG-5a1e0400-5157-5c6c-8abc-0000000000{gi:02}",
                     (9715, 12, 0)) for gi in range(7, 14)
        )),
        Card(1, "GPU-5a1e0400-5157-4c6c-8abc-000000000001", "00000002:00:00.0", (
            *(Instance("1g.10gb", gi, f"MIG-5a1e0400-5157-5c6c-8abc-0000000001{gi:02}",
                       (9715, 12, 0)) for gi in range(7, 11)),
            Instance("3g.40gb", 2, "MIG-5a1e0400-5157-5c6c-8abc-000000000102", (39988, 37, 0)),
        )),
        Card(2, "GPU-5a1e0400-5157-4c6c-8abc-000000000002", "00000003:00:00.0"),
    ),
    (_A100_CLOCKS, values(s.A100_MIXED, GPU_TEMP=35), power(s.A100_MIXED, 103.262, 400),
     values(s.A100_SMI, MEMORY_TEMP=44, MEM_MAX_OP_TEMP=95),
     framebuffer(s.A100_SMI, 81050, 0, 869), pcie(s.A100_SMI, 4, 4, 16, 16), *_WELL,
     *profiled(0, s.A100_MIXED)),
    _A100_BUSY, _LACKS, MIG_LACKS, flavour=_PROPRIETARY, strategy="mixed", other_devices=_SWITCHES,
    labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920",
            "nvidia.com/mig.capable": "true"},
)  # fmt: skip

A10G = Population(
    "a10g-g5", "A10G on AWS (g5)", "NVIDIA A10G", "0x2237", "23028", "[N/A]", "[N/A]",
    "515.105.01", (s.A10G_SMI, s.A10_BUS, s.PCI_IDS),
    (Card(0, "GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94", "00000000:00:1E.0"),),
    (values(s.A10G_SMI, GPU_UTIL=0, MEM_COPY_UTIL=0, ENC_UTIL=0, DEC_UTIL=0, SM_CLOCK=210,
            MEM_CLOCK=405, MAX_SM_CLOCK=1710, CLOCKS_EVENT_REASONS=1, GPU_TEMP=17,
            PCIE_REPLAY_COUNTER=0),
     power(s.A10G_SMI, 25.58, 300), framebuffer(s.A10G_SMI, 22569, 22, 435),
     pcie(s.A10G_SMI, 1, 4, 8, 16), zero(s.A10G_SMI, f"{ECC} {REMAPPED}"),
     zero(s.NO_MEMORY_SENSOR, "MEMORY_TEMP"),
     zero(s.HEALTHY, f"{THROTTLED} THRESHOLD_SRM VGPU_LICENSE_STATUS"),
     zero(s.NO_FABRIC, "FABRIC_MANAGER_STATUS"),
     values(s.ENERGY, TOTAL_ENERGY_CONSUMPTION=1.1e9), *EVERY_KIND, *profiled(0)),
    (values(s.LOADED, GPU_UTIL=100, MEM_COPY_UTIL=40, SM_CLOCK=1600, MEM_CLOCK=6251,
            CLOCKS_EVENT_REASONS=4, GPU_TEMP=60, POWER_USAGE=298, PCIE_LINK_GEN=4),
     *profiled(0.9, s.LOADED)),
    (NO_EVENTS, NO_PAGES, NO_TLIMIT, NO_NVLINK, OLD_DRIVER,
     lack("no memory sensor", s.A10G_SMI, "MEM_MAX_OP_TEMP"),
     lack("driver too old for it", s.OLD_DRIVER, "MEMORY_UNREPAIRABLE_FLAG")),
    flavour=_PROPRIETARY,
    labels={"nvidia.com/gpu.product": "NVIDIA-A10G", "nvidia.com/gpu.memory": "23028",
            "node.kubernetes.io/instance-type": "g5.xlarge"},
)  # fmt: skip

POPULATIONS = (MIG_SINGLE, MIG_MIXED, A10G)
