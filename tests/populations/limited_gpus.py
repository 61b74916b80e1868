"""T4, GeForce, the guest of a vGPU, and DGX Spark: each lacks something that all others have."""

from __future__ import annotations

from tests.populations import sources as s
from tests.populations.common import (
    ECC,
    EVERY_KIND,
    NO_ECC,
    NO_EVENTS,
    NO_NVLINK,
    NO_PROFILING,
    NO_REMAP,
    NO_TLIMIT,
    NVLINK,
    THROTTLED,
    framebuffer,
    pcie,
    power,
    profiled,
)
from tests.populations.model import Card, Population, lack, values, zero

_NVLINK_PROFILED = "PROF_NVLINK_TX_BYTES PROF_NVLINK_RX_BYTES"
NO_NVLINK_ERRORS = lack("no NVLink", s.NVML, f"{NVLINK} {_NVLINK_PROFILED}")

T4 = Population(
    "t4", "T4 (here on AWS, g4dn)", "Tesla T4", "0x1eb8", "15360", "[N/A]", "[N/A]", "580.105.08",
    (s.T4_PAGE, s.T4_SMI),
    (Card(0, "GPU-d7cbb0cd-d4bd-c2f7-dfaf-221df5e958ea", "00000000:00:1E.0"),),
    (values(s.T4_PAGE, GPU_UTIL=0, ENC_UTIL=0, DEC_UTIL=0, GPU_TEMP=24, MEMORY_TEMP=0,
            SM_CLOCK=300, MEM_CLOCK=405, POWER_USAGE=14.512, TOTAL_ENERGY_CONSUMPTION=48287135,
            PROF_GR_ENGINE_ACTIVE=0, PROF_PIPE_TENSOR_ACTIVE=0, PROF_DRAM_ACTIVE=1e-6,
            PROF_PCIE_TX_BYTES=29285, PROF_PCIE_RX_BYTES=30378),
     framebuffer(s.T4_PAGE, 14912, 0, 447),
     values(s.T4_SMI, MAX_SM_CLOCK=1590, POWER_MGMT_LIMIT=70, ENFORCED_POWER_LIMIT=70,
            PCIE_REPLAY_COUNTER=0, CLOCKS_EVENT_REASONS=1, RETIRED_SBE=0, RETIRED_DBE=0,
            RETIRED_PENDING=0, MEM_COPY_UTIL=0),
     pcie(s.T4_SMI, 1, 3, 8, 16), zero(s.T4_SMI, ECC),
     zero(s.TURING_GEFORCE, "GET_GPU_RECOVERY_ACTION"),
     zero(s.HEALTHY, f"{THROTTLED} VGPU_LICENSE_STATUS PROF_SM_ACTIVE PROF_SM_OCCUPANCY "
          "PROF_PIPE_FP64_ACTIVE PROF_PIPE_FP32_ACTIVE PROF_PIPE_FP16_ACTIVE"),
     zero(s.NO_FABRIC, "FABRIC_MANAGER_STATUS"), *EVERY_KIND),
    # 585 MHz is the clock that its maker promises; at 70 W it does not go beyond
    (values(s.T4_SMI, SM_CLOCK=585, MEM_CLOCK=5000, GPU_TEMP=40, PCIE_LINK_GEN=3),
     values(s.LOADED, GPU_UTIL=100, MEM_COPY_UTIL=60, CLOCKS_EVENT_REASONS=4, POWER_USAGE=69.7),
     *profiled(0.95, s.LOADED)),
    (NO_EVENTS, NO_REMAP, NO_TLIMIT, NO_NVLINK,
     lack("no memory sensor", s.T4_SMI, "MEM_MAX_OP_TEMP")),
    labels={"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360",
            "node.kubernetes.io/instance-type": "g4dn.xlarge"},
)  # fmt: skip

GEFORCE = Population(
    "geforce", "GeForce RTX 4080 SUPER", "NVIDIA GeForce RTX 4080 SUPER", "0x2702", "16376",
    "[N/A]", "N/A", "595.71.05", (s.GEFORCE_IDLE,),
    (Card(0, "GPU-5a1e0500-5157-4c6c-8abc-000000000000", "00000000:01:00.0"),),
    (values(s.GEFORCE_IDLE, GPU_UTIL=0, MEM_COPY_UTIL=23, ENC_UTIL=0, DEC_UTIL=0, SM_CLOCK=210,
            MEM_CLOCK=405, MAX_SM_CLOCK=3165, CLOCKS_EVENT_REASONS=1, GPU_TEMP=43,
            GET_GPU_RECOVERY_ACTION=0, PCIE_REPLAY_COUNTER=0),
     power(s.GEFORCE_IDLE, 26.20, 320), framebuffer(s.GEFORCE_IDLE, 15348, 596, 434),
     pcie(s.GEFORCE_IDLE, 1, 4, 16, 16), zero(s.GEFORCE_IDLE, THROTTLED),
     zero(s.HEALTHY, "VGPU_LICENSE_STATUS"), zero(s.NO_FABRIC, "FABRIC_MANAGER_STATUS"),
     values(s.ENERGY, TOTAL_ENERGY_CONSUMPTION=9.1e8), *EVERY_KIND),
    (values(s.GEFORCE_BUSY, GPU_UTIL=7, MEM_COPY_UTIL=2, ENC_UTIL=72, SM_CLOCK=2805,
            MEM_CLOCK=11251, CLOCKS_EVENT_REASONS=0, GPU_TEMP=46, POWER_USAGE=84.24,
            PCIE_LINK_GEN=4),
     framebuffer(s.GEFORCE_BUSY, 14470, 1474, 434)),
    (NO_EVENTS, NO_PROFILING, NO_ECC, NO_NVLINK, NO_TLIMIT,
     lack("no memory sensor", s.GEFORCE_NO_MEMORY_TEMP, "MEMORY_TEMP MEM_MAX_OP_TEMP")),
    kind="0x030000",
    labels={"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-4080-SUPER",
            "nvidia.com/gpu.memory": "16376"},
)  # fmt: skip

# The page is whole: of upstream's default list it has eleven fields, and no other.
VGPU = Population(
    "vgpu-guest", "vGPU guest (A100-10C)", "GRID A100-10C", "0x20f1", "10240", "Disabled",
    "[N/A]", "580.126.09", (s.VGPU_PAGE, s.VGPU_UTIL, s.PCI_IDS),
    (Card(0, "GPU-44d2411e-1604-478f-aa96-5a3c00000000", "00000000:03:00.0"),),
    (values(s.VGPU_PAGE, SM_CLOCK=1410, MEM_CLOCK=1215, MEMORY_TEMP=0, GPU_UTIL=0, MEM_COPY_UTIL=0,
            ENC_UTIL=0, DEC_UTIL=0, VGPU_LICENSE_STATUS=0),
     framebuffer(s.VGPU_PAGE, 9323, 0, 916),
     values(s.HEALTHY, MAX_SM_CLOCK=1410), *EVERY_KIND),
    (values(s.LOADED, GPU_UTIL=100, MEM_COPY_UTIL=30),
     framebuffer(s.LOADED, 1131, 8192, 916)),
    (NO_EVENTS,
     lack("no sensors", s.VGPU_PAGE, "GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION"),
     lack("no PCIe link of its own", s.VGPU_PAGE,
          "PCIE_REPLAY_COUNTER PROF_PCIE_TX_BYTES PROF_PCIE_RX_BYTES"),
     lack("no profiling", s.VGPU_PAGE,
          "PROF_GR_ENGINE_ACTIVE PROF_PIPE_TENSOR_ACTIVE PROF_DRAM_ACTIVE"),
     lack("no remapped rows, no NVLink", s.VGPU_PAGE,
          "UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE "
          "NVLINK_BANDWIDTH_TOTAL"),
     NO_PROFILING, NO_ECC, NO_NVLINK, NO_TLIMIT,
     lack("what only the host knows", s.UNKNOWN,
          f"{THROTTLED} CLOCKS_EVENT_REASONS MEM_MAX_OP_TEMP POWER_MGMT_LIMIT "
          "ENFORCED_POWER_LIMIT PCIE_LINK_GEN PCIE_MAX_LINK_GEN PCIE_LINK_WIDTH "
          "PCIE_MAX_LINK_WIDTH FABRIC_MANAGER_STATUS GET_GPU_RECOVERY_ACTION")),
    labels={"nvidia.com/gpu.product": "GRID-A100-10C", "nvidia.com/gpu.memory": "10240",
            "nvidia.com/vgpu.present": "true"},
)  # fmt: skip

# The page is whole here too, of an exporter 3.3.5 with upstream's default list.
GB10 = Population(
    "gb10", "GB10 (DGX Spark)", "NVIDIA GB10", "0x2e12", "[N/A]", "[N/A]", "[N/A]", "580.178.04",
    (s.GB10_PAGE, s.GB10_SMI, s.GB10_BUS, s.GB10_NODE, s.PCI_IDS),
    (Card(0, "GPU-2dee1e25-b3b5-007e-2b55-79f2d0f2ebe5", "0000000F:01:00.0"),),
    (values(s.GB10_PAGE, GPU_UTIL=0, MEM_COPY_UTIL=0, ENC_UTIL=0, DEC_UTIL=0, GPU_TEMP=46,
            MEMORY_TEMP=0, POWER_USAGE=10.25, TOTAL_ENERGY_CONSUMPTION=4.58e11, SM_CLOCK=2411,
            PCIE_REPLAY_COUNTER=0, NVLINK_BANDWIDTH_TOTAL=0, VGPU_LICENSE_STATUS=0),
     values(s.HEALTHY, MAX_SM_CLOCK=3003, CLOCKS_EVENT_REASONS=0, GET_GPU_RECOVERY_ACTION=0),
     zero(s.HEALTHY, THROTTLED), zero(s.NO_FABRIC, "FABRIC_MANAGER_STATUS"), *EVERY_KIND),
    (values(s.GB10_PAGE, GPU_UTIL=90, GPU_TEMP=58, POWER_USAGE=38.9, SM_CLOCK=2509),),
    (NO_EVENTS,
     lack("no memory of its own", s.GB10_PAGE, "FB_FREE FB_USED FB_RESERVED MEM_CLOCK"),
     lack("no profiling", s.GB10_PAGE, "PROF_GR_ENGINE_ACTIVE PROF_PIPE_TENSOR_ACTIVE "
          "PROF_DRAM_ACTIVE PROF_PCIE_TX_BYTES PROF_PCIE_RX_BYTES"),
     lack("no power limit", s.GB10_SMI, "POWER_MGMT_LIMIT ENFORCED_POWER_LIMIT"),
     NO_PROFILING, NO_ECC, NO_NVLINK_ERRORS,
     lack("not told by any recording", s.UNKNOWN,
          "MEM_MAX_OP_TEMP GPU_TEMP_LIMIT PCIE_LINK_GEN PCIE_MAX_LINK_GEN PCIE_LINK_WIDTH "
          "PCIE_MAX_LINK_WIDTH")),
    flavour="Open Kernel Module for aarch64", kind="0x030000",
    labels={"nvidia.com/gpu.product": "NVIDIA-GB10", "kubernetes.io/arch": "arm64"},
)  # fmt: skip

POPULATIONS = (T4, GEFORCE, VGPU, GB10)
