"""Every DCGM field gpuboot knows: what it means, its unit, and whether it is collected.

The exporter's collectors CSV and docs/metrics.md are made from this one table. Names are the
ones that dcgm-exporter prints; DCGM 4.6 renamed most of them and kept these as aliases of the
same id. Ids: dcgm_fields.h of DCGM 4.6.0. Types: dcgm-exporter 4.8.3 and its default CSV.
"""

# ruff: noqa: E501  # a table: one field is one line
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "label"]
Tier = Literal["upstream", "gpuboot", "opt-in"]


class UnknownField(ValueError):
    """A name that is no field of the table; the exporter would refuse to start with it."""


@dataclass(frozen=True)
class Field:
    """One metric of dcgm-exporter.

    + name: metric name, which is also the CSV's first column
    + id: DCGM's field id; None for what the exporter computes itself (`DCGM_EXP_*`)
    + unit: unit of the value; "" for counts, states and texts
    + kind: Prometheus type, or `label` for a text that becomes a label of all other series
    + tier: `upstream`: collected by dcgm-exporter's own default file; `gpuboot`: collected by
      ours besides; `opt-in`: collected when `exporter.counters` names it
    + since: lowest DCGM (or dcgm-exporter) version that has it; "" when every supported one has
    + help: what it means; without commas and quotes, which the exporter's CSV reader trips over
    """

    name: str
    id: int | None
    unit: str
    kind: Kind
    tier: Tier
    since: str
    help: str

    @property
    def default(self) -> bool:
        """Whether it is collected without being asked for."""
        return self.tier != "opt-in"


def _table(tier: Tier, *rows: tuple[str, int | None, str, Kind, str, str]) -> tuple[Field, ...]:
    return tuple(Field(row[0], row[1], row[2], row[3], tier, row[4], row[5]) for row in rows)


# fmt: off
UPSTREAM = _table(
    "upstream",
    ("DCGM_FI_DRIVER_VERSION", 1, "", "label", "", "Driver version"),
    ("DCGM_FI_DEV_SM_CLOCK", 100, "MHz", "gauge", "", "SM clock frequency"),
    ("DCGM_FI_DEV_MEM_CLOCK", 101, "MHz", "gauge", "", "Memory clock frequency"),
    ("DCGM_FI_DEV_MEMORY_TEMP", 140, "°C", "gauge", "", "Memory temperature"),
    ("DCGM_FI_DEV_GPU_TEMP", 150, "°C", "gauge", "", "GPU temperature"),
    ("DCGM_FI_DEV_POWER_USAGE", 155, "W", "gauge", "", "Power draw"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 156, "mJ", "counter", "", "Energy since the driver was loaded"),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 202, "", "counter", "", "PCIe retries"),
    ("DCGM_FI_DEV_GPU_UTIL", 203, "%", "gauge", "", "Share of time in which any kernel ran"),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", 204, "%", "gauge", "", "Share of time in which device memory was read or written; not bandwidth"),
    ("DCGM_FI_DEV_ENC_UTIL", 206, "%", "gauge", "", "Video encoder utilization"),
    ("DCGM_FI_DEV_DEC_UTIL", 207, "%", "gauge", "", "Video decoder utilization"),
    ("DCGM_FI_DEV_XID_ERRORS", 230, "", "gauge", "", "Last XID error; never returns to 0 by itself"),
    ("DCGM_FI_DEV_FB_FREE", 251, "MiB", "gauge", "", "Free device memory"),
    ("DCGM_FI_DEV_FB_USED", 252, "MiB", "gauge", "", "Used device memory"),
    ("DCGM_FI_DEV_FB_RESERVED", 253, "MiB", "gauge", "", "Device memory reserved by the driver"),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 393, "", "counter", "", "Memory rows remapped after uncorrectable errors"),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 394, "", "counter", "", "Memory rows remapped after correctable errors"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", 395, "", "gauge", "", "1: a row could not be remapped; NVIDIA's criterion for replacement"),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 449, "MB/s", "gauge", "", "NVLink throughput over all links; a counter up to exporter 4.8.2"),
    ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", 526, "", "gauge", "", "1: vGPU licence in force"),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1001, "ratio", "gauge", "", "Share of time in which the graphics or compute engine was active"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1004, "ratio", "gauge", "", "Share of cycles in which the tensor pipe was active"),
    ("DCGM_FI_PROF_DRAM_ACTIVE", 1005, "ratio", "gauge", "", "Share of cycles in which device memory moved data"),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", 1009, "B/s", "gauge", "", "PCIe throughput from the GPU to the host"),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", 1010, "B/s", "gauge", "", "PCIe throughput from the host to the GPU"),
)

OURS = _table(
    "gpuboot",
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 112, "bitmask", "gauge", "", "Why clocks are held down: 1 idle 2 setting 4 power cap 8 hw slowdown 16 sync boost 32 sw thermal 64 hw thermal 128 power brake"),
    ("DCGM_FI_DEV_MAX_SM_CLOCK", 113, "MHz", "gauge", "", "Highest SM clock"),
    ("DCGM_FI_DEV_MEM_MAX_OP_TEMP", 151, "°C", "gauge", "", "Highest operating temperature of the memory"),
    ("DCGM_FI_DEV_GPU_TEMP_LIMIT", 153, "°C", "gauge", "DCGM 4.1", "Degrees left before the GPU slows itself down"),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", 160, "W", "gauge", "", "Power limit that was asked for"),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 164, "W", "gauge", "", "Power limit in force after all limiters"),
    ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", 170, "", "gauge", "", "Fabric state: 0 none 1 not started 2 in progress 3 success"),
    ("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 235, "", "gauge", "", "PCIe generation possible"),
    ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 236, "lanes", "gauge", "", "PCIe lanes possible"),
    ("DCGM_FI_DEV_PCIE_LINK_GEN", 237, "", "gauge", "", "PCIe generation in use; falls when idle"),
    ("DCGM_FI_DEV_PCIE_LINK_WIDTH", 238, "lanes", "gauge", "", "PCIe lanes in use"),
    ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 310, "", "counter", "", "Corrected memory errors since the last reset"),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 311, "", "counter", "", "Uncorrected memory errors since the last reset"),
    ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 312, "", "counter", "", "Corrected memory errors over the GPU's life"),
    ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 313, "", "counter", "", "Uncorrected memory errors over the GPU's life"),
    ("DCGM_FI_DEV_THRESHOLD_SRM", 346, "", "gauge", "", "1: too many SRAM errors"),
    ("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", 389, "", "gauge", "", "Memory banks without spare rows"),
    ("DCGM_FI_DEV_RETIRED_SBE", 390, "", "counter", "", "Pages retired after corrected errors (before Ampere)"),
    ("DCGM_FI_DEV_RETIRED_DBE", 391, "", "counter", "", "Pages retired after uncorrected errors (before Ampere)"),
    ("DCGM_FI_DEV_RETIRED_PENDING", 392, "", "gauge", "", "Pages that wait to be retired (before Ampere)"),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", 396, "", "gauge", "", "1: a row remap waits for a GPU reset"),
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 409, "", "counter", "", "NVLink flow-control CRC errors"),
    ("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 419, "", "counter", "", "NVLink data CRC errors"),
    ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 429, "", "counter", "", "NVLink replays"),
    ("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 439, "", "counter", "", "NVLink recoveries"),
    ("DCGM_FI_PROF_SM_ACTIVE", 1002, "ratio", "gauge", "", "Share of cycles in which an SM had a warp; averaged over SMs"),
    ("DCGM_FI_PROF_SM_OCCUPANCY", 1003, "ratio", "gauge", "", "Resident warps as a share of the most possible"),
    ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1006, "ratio", "gauge", "", "Share of cycles in which the FP64 pipe was active"),
    ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1007, "ratio", "gauge", "", "Share of cycles in which the FP32 pipe was active"),
    ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1008, "ratio", "gauge", "", "Share of cycles in which the FP16 pipe was active"),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1011, "B/s", "gauge", "", "NVLink throughput sent"),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", 1012, "B/s", "gauge", "", "NVLink throughput received"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", 1420, "ns", "counter", "DCGM 4.2", "Time held down by the power cap; normal under load"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS", 1421, "ns", "counter", "DCGM 4.2", "Time held down by sync boost"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", 1422, "ns", "counter", "DCGM 4.2", "Time slowed down by the driver for heat"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", 1423, "ns", "counter", "DCGM 4.2", "Time slowed down by the hardware for heat"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", 1424, "ns", "counter", "DCGM 4.2", "Time slowed down by the external power brake"),
    ("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", 1507, "", "gauge", "DCGM 4.6", "1: memory cannot be repaired; replace the GPU"),
    ("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", 1523, "", "gauge", "DCGM 4.5", "What the driver asks for: 0 nothing 1 reset 2 reboot 3 drain P2P 4 drain and reset"),
    ("DCGM_EXP_XID_ERRORS_TOTAL", None, "", "counter", "exporter 4.8.3", "XID errors by code since the exporter started"),
    ("DCGM_EXP_CLOCK_EVENTS_TOTAL", None, "", "counter", "exporter 4.8.3", "Samples in which a clock event was seen; by event"),
    ("DCGM_EXP_GPU_HEALTH_STATUS", None, "", "gauge", "", "DCGM's health verdict: 0 pass 10 warn 20 fail"),
)

OPT_IN = _table(
    "opt-in",
    ("DCGM_FI_DEV_SLOWDOWN_TEMP", 158, "°C", "gauge", "", "Temperature at which the GPU slows itself down"),
    ("DCGM_FI_DEV_FAN_SPEED", 191, "%", "gauge", "", "Fan speed"),
    ("DCGM_FI_DEV_POWER_VIOLATION", 240, "ns", "counter", "", "Time throttled by power"),
    ("DCGM_FI_DEV_THERMAL_VIOLATION", 241, "ns", "counter", "", "Time throttled by heat"),
    ("DCGM_FI_DEV_SYNC_BOOST_VIOLATION", 242, "ns", "counter", "", "Time throttled by sync boost"),
    ("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 243, "ns", "counter", "", "Time throttled by board limits"),
    ("DCGM_FI_DEV_LOW_UTIL_VIOLATION", 244, "ns", "counter", "", "Time at low clocks for low utilization"),
    ("DCGM_FI_DEV_RELIABILITY_VIOLATION", 245, "ns", "counter", "", "Time throttled by reliability limits"),
    ("DCGM_FI_DEV_FB_TOTAL", 250, "MiB", "gauge", "", "Device memory"),
    ("DCGM_FI_DEV_FB_USED_PERCENT", 254, "ratio", "gauge", "", "Used device memory as a share of all"),
    ("DCGM_EXP_P2P_STATUS", None, "", "gauge", "", "NVLink peer-to-peer state by peer"),
)
# fmt: on

FIELDS: tuple[Field, ...] = UPSTREAM + OURS + OPT_IN
BY_NAME = {field.name: field for field in FIELDS}
