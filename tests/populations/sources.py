"""The public recordings that values come from, and the pieces of knowledge that fill their gaps."""

from __future__ import annotations

from tests.populations.model import Source, derived

_CAPTURES = "utkuozdemir/nvidia_gpu_exporter@e656cd8 internal/captures/linux-x86_64__nvidia-"
_TELEGRAF = "influxdata/telegraf@b272631 plugins/inputs/nvidia_smi/testdata/"
_GPUD = "leptonai/gpud@4a8de33 components/accelerator/nvidia/fabric-manager/testdata/"
_EVIDENCE = "CNCF Kubernetes AI conformance (cncf/k8s-ai-conformance), "

# nvidia-smi of one machine: version, -L, -q and --query-gpu, without work and under it
H100_IDLE = Source(f"{_CAPTURES}h100-80gb-hbm3__590.48.01.txt:1741")
H100_BUSY = Source(f"{_CAPTURES}h100-80gb-hbm3__590.48.01.txt:2105")
H100_MIG = Source(f"{_CAPTURES}h100-mig__590.48.01.txt:1186 (-L), 1501 (-q), 1834 (--query-gpu)")
H100_MIG_BUSY = Source(f"{_CAPTURES}h100-mig__590.48.01.txt:2304")
MIG_NO_NVLINK = Source(f"{_CAPTURES}h100-mig__590.48.01.txt:1216: not supported in MIG mode")
H200_IDLE = Source(f"{_CAPTURES}h200__590.48.01.txt:1741")
H200_BUSY = Source(f"{_CAPTURES}h200__590.48.01.txt:2105")
GEFORCE_IDLE = Source(f"{_CAPTURES}geforce-rtx-4080-super__595.71.05.txt:1711")
GEFORCE_BUSY = Source(f"{_CAPTURES}geforce-rtx-4080-super__595.71.05.txt:2115")
TURING_GEFORCE = Source(f"{_CAPTURES}geforce-rtx-2080-super__595.71.05.txt:1678")
T4_SMI = Source(f"{_TELEGRAF}tesla-t4.xml (driver 515.105.01, bus 00000000:00:1E.0)")
A10G_SMI = Source(f"{_TELEGRAF}a10g.xml (driver 515.105.01, bus 00000000:00:1E.0)")
A100_SMI = Source(f"{_TELEGRAF}a100-sxm4-v12.xml (driver 535.54.03, four 1g.20gb)")
A100_BUS = Source(f"{_GPUD}lspci.nn.a100 (eight 10de:20b2, six bridges 10de:1af1)")
A10_BUS = Source(f"{_GPUD}lspci.nn.a10 (10de:2236, class 0302)")
# pages of a dcgm-exporter
A100_MIXED = Source(
    "freelensapp/freelens-gpu-extension@d76d4f2 "
    "src/renderer/gpu/__tests__/fixtures/dgx_a100_mig_mixed.prom (captured 2026-09-24)"
)
T4_PAGE = Source(f"{_EVIDENCE}v1.35, Rafay MKS, accelerator metrics (driver 580.105.08)")
VGPU_PAGE = Source(f"{_EVIDENCE}v1.36, VMware VKS, accelerator metrics (driver 580.126.09)")
VGPU_MIG_BACKED = Source("NVIDIA/dcgm-exporter#193 (driver 525.85.05): names of all series")
VGPU_UTIL = Source("NVIDIA/dcgm-exporter#236: GPU_UTIL is there, GPU_TEMP is not")
GB10_PAGE = Source(
    "domenkogler/homelab, documentation of the host spark, HD-377 and HD-379 of 2026-09-16 "
    "(driver 580.178.04, exporter 3.3.5)"
)
GB10_PAGE_2 = Source("rwlove/home-ops#13238, 2026-07-24 (driver 580.142)")
H100_MIG_NO_FB = Source("NVIDIA/dcgm-exporter#512 (driver 535.129.03): no FB fields on instances")
GEFORCE_NO_MEMORY_TEMP = Source("NVIDIA/dcgm-exporter#460 (RTX 3090, 4070 Ti SUPER)")
NO_MEMORY_SENSOR = derived(
    "0 without a sensor: DCGM does not look at the field's own result "
    "(DcgmCacheManager.cpp of DCGM 4.6.0, DCGM_FI_DEV_MEMORY_TEMP_CELSIUS)"
)
BLANK_VALUE = Source("NVIDIA/gpu-monitoring-tools#97: 9223372036854775794 for what a T4 has not")
# nvidia-smi's table, and others
GB10_SMI = Source("NVIDIA/k8s-device-plugin#1482 (driver 580.95.05): table of nvidia-smi")
GB10_BUS = Source("leptonai/gpud#1170: bus 000f:01:00.0; memory is Not Supported by NVML")
B200_SMI = Source(
    "modal-labs/gpu-glossary gpu-glossary/host-software/nvidia-smi.md (driver 575.57.08)"
)
B200_CLOCK = Source("hashcat's device header of an 8x B200 node, driver 570.172.08: clock 1965")
H100_NODE = Source(
    "NVIDIA/aicr docs/conformance/cncf, evidence on EKS (driver 580.105.08): UUIDs, addresses"
)
B200_FABRIC = Source(
    "siderolabs/extensions#893 (NVSwitches are mlx5 devices), NVIDIA/gpu-operator#2781 (fabric "
    "In Progress and error 802 where nobody serves them)"
)
GH200_SMI = Source("slitvinov/grace README.md (driver 535.154.05): table of nvidia-smi")
GH200_FABRIC = Source("leptonai/gpud#1206: without NVSwitch the fabric's state is Not Supported")
GH200_BUS = Source("kubernetes.io, feature gate KubeletPodResourcesDynamicResources: 00000009:01")
GB200_NODE = Source("leptonai/gpud detect_nvswitch_test.go:56: 10de:22b1 of class 0604 is a bridge")
# labels and resources of nodes
MIG_SINGLE_NODE = Source("NVIDIA/gpu-operator#981: labels under mig.config all-1g.5gb")
MIG_MIXED_NODE = Source(
    "NVIDIA/k8s-device-plugin@1b826acc6 README.md:486-512: resources of `mixed`"
)
GB10_NODE = Source("NVIDIA/gpu-operator#1794: the device plugin offers nvidia.com/gpu")

PCI_IDS = derived("PCI id database: no recording of this machine's bus is public")
HEALTHY = derived("a GPU in order: nothing was counted since its driver was loaded")
NO_HEALTH = derived("DCGM passes each of its health watches until it finds something")
LOADED = derived("full load, by the model's own limits: no recording of it is public")
HOPPER = derived("as the recorded H100 of the same driver interface says")
ENERGY = derived("counters start anywhere")
FIRST = derived("dcgm-exporter makes these series at the first event")
NVML = derived("nvidia-smi answers N/A, DCGM then gives a blank, which the exporter leaves out")
NO_PROFILING = derived("DCGM supports profiling on data center GPUs only")
NO_FABRIC = derived("DcgmFMStatusNotSupported is 0 (dcgm_structs.h of DCGM 4.6.0)")
UNKNOWN = derived("no recording says; absent is the harder case")
OLD_DRIVER = derived("the field needs driver 570")
NVLINK_5 = derived("NVLink 5 counts in other fields (dcgm_fields.h: fields 1200 and up)")
