"""Which fields tell that a GPU is there at all.

No single sensor is on every kind of GPU. vGPU guests have neither temperature nor power
(NVIDIA/dcgm-exporter issues 193 and 236), GB10 has no frame buffer of its own, and under MIG
there is no GPU_UTIL. The SM clock stood in every exposition that was looked at; the other two
stand in for a kind that was not.
"""

from __future__ import annotations

ANCHORS = ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL")
# Fields of one GPU or slice have the same labels, so `or` gives one series for each.
ANCHOR = " or ".join(ANCHORS)
AGES = " or ".join(f"timestamp({name})" for name in ANCHORS)
