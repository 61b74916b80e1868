"""The fields by which a GPU is known to be there at all.

No single sensor is on every kind of GPU. vGPU guests have neither temperature nor power
(NVIDIA/dcgm-exporter issues 193 and 236), GB10 has no frame buffer of its own, and under MIG
there is no GPU_UTIL. The SM clock stood in every exposition that was looked at; the other two
stand in for a kind that was not.
"""

from __future__ import annotations

ANCHORS = ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL")
# A field that stands in for another does so for a whole GPU or slice: where pods share it, GPU_UTIL
# has series that the others lack, of the device as a whole and with `pod_uid` (dcgm-exporter 4.8.4,
# internal/pkg/transformation/kubernetes.go, createPerProcessMetrics).
AGES = " or on (instance, UUID, GPU_I_ID) ".join(f"timestamp({name})" for name in ANCHORS)
