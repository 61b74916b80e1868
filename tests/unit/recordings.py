"""What real machines said: values of public captures, each with its source.

NGE: github.com/utkuozdemir/nvidia_gpu_exporter at e656cd8, internal/captures (UUIDs are masked
there). FREELENS: github.com/freelensapp/freelens-gpu-extension at d76d4f2,
src/renderer/gpu/__tests__/fixtures/dgx_a100_mig_mixed.prom (47 slices on 7 cards, one whole GPU).
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from gpuboot.hosts.mig_devices import Instance
from gpuboot.verify.devices import Gpu, Sensor

ALL: tuple[Sensor, ...] = ("temperature", "power", "memory")

# NGE linux-x86_64__nvidia-h200-mig__590.48.01.txt, lines 1186 to 1191: `nvidia-smi -L`
H200_UUID = "GPU-00000000-0000-0000-0000-000000000000"
H200_LIST = (
    f"GPU 0: NVIDIA H200 (UUID: {H200_UUID})",
    "MIG 1c.3g.71gb  Device  0: (UUID: MIG-00000000-0000-0000-0000-000000000000)",
    "MIG 2c.3g.71gb  Device  1: (UUID: MIG-00000001-0000-0000-0000-000000000001)",
    "MIG 2g.35gb     Device  2: (UUID: MIG-00000002-0000-0000-0000-000000000002)",
    "MIG 1g.18gb     Device  3: (UUID: MIG-00000003-0000-0000-0000-000000000003)",
    "MIG 1g.18gb     Device  4: (UUID: MIG-00000004-0000-0000-0000-000000000004)",
)
# the same file, `nvidia-smi -q`: (GPU instance, compute instance) of MIG devices 0 to 4
H200_IDS = ((2, 0), (2, 1), (3, 0), (9, 0), (10, 0))
H200_BUS = "00000000:83:00.0"
H200_DETAILS = (
    f"GPU {H200_BUS}",
    *(
        line
        for index, (gi, ci) in enumerate(H200_IDS)
        for line in (
            f"Index                                          : {index}",
            f"GPU Instance ID                                : {gi}",
            f"Compute Instance ID                            : {ci}",
        )
    ),
)
# the same file, `--query-gpu`, the fact's columns; without MIG: linux-x86_64__nvidia-h200__590…
H200_ROW = f"0, {H200_UUID}, NVIDIA H200, {H200_BUS}, 143771, Enabled, 28, 78.28, P0"

# FREELENS: GPU 2 has four 1g.10gb and one 3g.40gb, GPU 4 is whole; values of both
A100_GI = {7: "1g.10gb", 8: "1g.10gb", 9: "1g.10gb", 10: "1g.10gb", 2: "3g.40gb"}
A100_CUT = "GPU-a1000002-0000-4000-8000-000000000000"
A100_WHOLE = "GPU-a1000004-0000-4000-8000-000000000000"


def mig_uuid(gi: int) -> str:
    return f"MIG-a1000002-0000-4000-8000-{gi:012x}"


def a100(index: int, uuid: str, instances: tuple[Instance, ...], mig: bool = True) -> Gpu:
    """One of the DGX's cards."""
    return Gpu(
        pci=f"0000:{0x07 + index:02x}:00.0",
        uuid=uuid,
        index=index,
        name="NVIDIA A100-SXM4-80GB",
        memory_mib=81920,
        mig=mig,
        instances=instances,
        sensors=ALL,
    )


MIXED = (
    a100(
        2,
        A100_CUT,
        tuple(
            Instance(uuid=mig_uuid(gi), profile=profile, index=index, gi=gi, ci=0)
            for index, (gi, profile) in enumerate(A100_GI.items())
        ),
    ),
    a100(4, A100_WHOLE, (), mig=False),
)

# /proc/driver/nvidia/version of machines and documents, with version and whether it is open.
# In order: Talos' guide; an Ubuntu 24.04 desktop; a forum's R390 with single blanks; a GH200-class
# aarch64 host; SUSE's guide; DGX Spark (GB10) in 2026-03 and 2026-01; a Jetson; what a vGPU guest
# with driver 580.126.09 has is the proprietary form.
_NVRM = "NVRM version: NVIDIA UNIX"
DRIVERS = (
    (f"{_NVRM} x86_64 Kernel Module  515.65.01  Wed Mar 16 11:24:05 UTC 2022", "515.65.01", False),
    (
        f"{_NVRM} x86_64 Kernel Module  550.144.03  Mon Dec 30 17:44:08 UTC 2024",
        "550.144.03",
        False,
    ),
    (f"{_NVRM} x86_64 Kernel Module 390.48 Thu Mar 22 00:42:57 PDT 2018", "390.48", False),
    (f"{_NVRM} aarch64 Kernel Module  550.120  Fri Sep 13 11:01:10 UTC 2024", "550.120", False),
    (
        f"{_NVRM} Open Kernel Module for x86_64  555.42.06  Release Build  (abuild@host)  "
        "Thu Jul 11 12:00:00 UTC 2024",
        "555.42.06",
        True,
    ),
    (
        f"{_NVRM} Open Kernel Module for aarch64  580.142  Release Build  "
        "(dvs-builder@U22-I3-H10-02-1)  Tue Mar  3 19:08:06 UTC 2026",
        "580.142",
        True,
    ),
    (
        f"{_NVRM} Open Kernel Module for aarch64  580.126.09  Release Build  "
        "(dvs-builder@U22-I3-AF04-07-5)  Wed Jan  7 22:35:57 UTC 2026",
        "580.126.09",
        True,
    ),
    (
        f"{_NVRM} Open Kernel Module for aarch64  540.4.0  Release Build  "
        "(buildbrain@mobile-u64-6336-d8000)  Tue Jan  7 17:35:12 PST 2025",
        "540.4.0",
        True,
    ),
)

# `nvidia-smi` of influxdata/telegraf at b272631, plugins/inputs/nvidia_smi/testdata, the fact's
# columns (a100-sxm4-v12.xml has no UUID of its own; MIG devices 0 to 3 are GPU instances 3 to 6)
TELEGRAF = {
    "a10g": "0, GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94, NVIDIA A10G, 00000000:00:1E.0, "
    "23028, [N/A], 17, 25.58, P8",
    "tesla-t4": "0, GPU-d37e67a5-91dd-3774-a5cb-99096249601a, Tesla T4, 00000000:00:1E.0, "
    "15360, [N/A], 40, 26.78, P0",
    "quadro-p400": "0, GPU-8f750be4-dfbc-23b9-b33f-da729a536494, Quadro P400, 00000000:43:00.0, "
    "1998, [N/A], 33, [N/A], P8",
}

# What dcgm-exporter had of kinds that lack sensors: metric -> value. All else was absent.
# vGPU guest: "GRID A100-40C", driver 580.126.09, in a VKS how-to of 2026 (public GitHub file
# with GPU-0946f70c-659b-4c39-8b78-7e7600000000); issues NVIDIA/dcgm-exporter#193 and #236 agree
VGPU = {
    "DCGM_FI_DEV_SM_CLOCK": 1410,
    "DCGM_FI_DEV_MEM_CLOCK": 1215,
    "DCGM_FI_DEV_MEMORY_TEMP": 0,
    "DCGM_FI_DEV_GPU_UTIL": 0,
    "DCGM_FI_DEV_MEM_COPY_UTIL": 0,
    "DCGM_FI_DEV_ENC_UTIL": 0,
    "DCGM_FI_DEV_DEC_UTIL": 0,
    "DCGM_FI_DEV_FB_FREE": 37739,
    "DCGM_FI_DEV_FB_USED": 0,
    "DCGM_FI_DEV_FB_RESERVED": 3220,
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 1,
}
# DGX Spark, "NVIDIA GB10", driver 580.178.04, exporter 3.3.5: a homelab's log of 2026-09-16
# ("13 series emit"; FB_*, MEM_CLOCK and all PROF fields are not emitted)
GB10 = {
    "DCGM_FI_DEV_SM_CLOCK": 2509,
    "DCGM_FI_DEV_GPU_UTIL": 88,
    "DCGM_FI_DEV_GPU_TEMP": 50,
    "DCGM_FI_DEV_POWER_USAGE": 12.3,
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 458e9,
    "DCGM_FI_DEV_XID_ERRORS": 0,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0,
    "DCGM_FI_DEV_MEM_COPY_UTIL": 0,
    "DCGM_FI_DEV_MEMORY_TEMP": 0,
    "DCGM_FI_DEV_ENC_UTIL": 0,
    "DCGM_FI_DEV_DEC_UTIL": 0,
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": 0,
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 0,
}

# A slice of an A800 in MIG mode; the same fields stand on an A30's (dcgm-exporter#317)
SLICE = {"DCGM_FI_DEV_SM_CLOCK": 1410, "DCGM_FI_DEV_GPU_TEMP": 35}


def kubeadm_objects() -> dict[str, Any]:
    """kubeadm's configuration, what it prints of its addons, and its objects in a real cluster."""
    recorded = Path(__file__).with_name("recorded_kubeadm_objects.json.gz").read_bytes()
    objects: dict[str, Any] = json.loads(gzip.decompress(recorded))
    return objects


def in_force() -> dict[str, Any]:
    """What facts print of what is in force in a real cluster that nobody has touched.

    `config`: kubeadm's configuration; `in_force`, `static_pods`: lines of the facts; `planted`:
    all that in another one, after many changes by hand, with `hosts`: lines of each about its boot.
    """
    recorded = Path(__file__).with_name("recorded_in_force.json.gz").read_bytes()
    content: dict[str, Any] = json.loads(gzip.decompress(recorded))
    return content
