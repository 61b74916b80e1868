"""Every DCGM field gpuboot knows: what it means, its unit, its limits, and whether it is collected.

The exporter's collectors CSV, docs/metrics.md and the estimate of series are made from this one
table. Names are the ones that dcgm-exporter prints; DCGM 4.6 renamed most of them and kept these
as aliases of the same id. Ids, entity levels and "NVLink 5" notes: dcgm_fields.h and
dcgm_fields.cpp of DCGM 4.6.0. Types: dcgm-exporter 4.8.3 and its default CSV.
"""

# ruff: noqa: E501  # a table: one field is one line
from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Literal

from gpuboot.config.support import Source

SOURCE = Source(date(2026, 8, 19), "NVIDIA/DCGM v4.6.0, go-dcgm v1.4611.0, dcgm-exporter 4.8.3")
Kind = Literal["gauge", "counter", "label"]
Tier = Literal["upstream", "gpuboot", "opt-in"]
Level = Literal["gpu", "slice", "once"]
Since = tuple[Literal["DCGM", "exporter"], str]


class UnknownField(ValueError):
    """A name that is no field of the table; the exporter would refuse to start with it."""


class Family(StrEnum):
    """What a field is about; docs/metrics.md has one chapter for each."""

    ACTIVITY = "activity"
    PROFILING = "profiling"
    MEMORY = "memory"
    CLOCKS = "clocks"
    THROTTLING = "throttling"
    HEAT = "heat"
    POWER = "power"
    PCIE = "pcie"
    NVLINK = "nvlink"
    ECC = "ecc"
    HEALTH = "health"
    IDENTITY = "identity"


class Limit(StrEnum):
    """Where a field has no value. A field without a value has no series."""

    PROFILING = "GPUs with profiling"
    NO_MIG = "not under MIG"
    NO_VGPU = "not in vGPU guests"
    ECC = "GPUs with ECC memory"
    AMPERE = "Ampere and later"
    BEFORE_AMPERE = "before Ampere"
    MEMORY_SENSOR = "GPUs with a memory sensor, such as HBM"
    FAN = "GPUs with fans of their own"
    VIDEO = "GPUs with that video engine"
    NVLINK = "GPUs with NVLink"
    NVLINK_5 = "NVLink 5 (Blackwell) and later"
    FABRIC = "GPUs on an NVSwitch fabric"
    VGPU = "vGPU guests"
    RECENT_DRIVER = "driver 570 and later"
    AFTER_FIRST = "from the first event on"


@dataclass(frozen=True)
class Field:
    """A metric of dcgm-exporter.

    + family: what it is about
    + name: metric name, which is also the CSV's first column
    + id: DCGM's field id; None for what the exporter computes itself (`DCGM_EXP_*`)
    + unit: unit of the value; "" for counts, states and texts
    + kind: Prometheus type, or `label` for a text that becomes a label of all other series
    + tier: `upstream`: collected by dcgm-exporter's own default file; `gpuboot`: collected by
      ours besides; `opt-in`: collected when `exporter.counters` names it
    + level: under MIG, `slice`: each slice has its own value; `gpu`: the whole GPU's value stands
      on each of its slices, so that a sum counts it several times; `once`: the GPU has one series
      that names no slice and no pod
    + limits: where it has no value; () when every supported GPU has it
    + since: lowest DCGM or dcgm-exporter that has it; None when every supported one has
    + help: what it means; without commas and quotes, which the exporter's CSV reader trips over
    """

    family: Family
    name: str
    id: int | None
    unit: str
    kind: Kind
    tier: Tier
    level: Level
    limits: tuple[Limit, ...]
    since: Since | None
    help: str

    @property
    def default(self) -> bool:
        """Whether it is collected without being asked for."""
        return self.tier != "opt-in"


_Row = tuple[str, int | None, str, Kind, Tier, Level, tuple[Limit, ...], Since | None, str]


def _family(family: Family, *rows: _Row) -> tuple[Field, ...]:
    return tuple(Field(family, *row) for row in rows)


_NO_MIG = (Limit.NO_MIG,)
_NO_VGPU = (Limit.NO_VGPU,)
_VIDEO = (Limit.VIDEO, Limit.NO_MIG)
_PROF = (Limit.PROFILING,)
_PROF_NVLINK = (Limit.PROFILING, Limit.NVLINK)
_NVLINK, _NVLINK_5 = (Limit.NVLINK,), (Limit.NVLINK_5,)
_ECC, _AMPERE, _PAGES = (Limit.ECC,), (Limit.ECC, Limit.AMPERE), (Limit.ECC, Limit.BEFORE_AMPERE)
_REMAPS = (Limit.ECC, Limit.AMPERE, Limit.NO_MIG)
_FIRST = (Limit.AFTER_FIRST,)
_4_1: Since = ("DCGM", "4.1")
_4_2: Since = ("DCGM", "4.2")
_4_5: Since = ("DCGM", "4.5")
_TOTALS: Since = ("exporter", "4.8.3")

# fmt: off
_ACTIVITY = _family(
    Family.ACTIVITY,
    ("DCGM_FI_DEV_GPU_UTIL", 203, "%", "gauge", "upstream", "gpu", _NO_MIG, None, "Share of time in which any kernel ran"),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", 204, "%", "gauge", "upstream", "gpu", _NO_MIG, None, "Share of time in which device memory was read or written; not bandwidth"),
    ("DCGM_FI_DEV_ENC_UTIL", 206, "%", "gauge", "upstream", "gpu", _VIDEO, None, "Video encoder utilization"),
    ("DCGM_FI_DEV_DEC_UTIL", 207, "%", "gauge", "upstream", "gpu", _VIDEO, None, "Video decoder utilization"),
)

_PROFILING = _family(
    Family.PROFILING,
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1001, "ratio", "gauge", "upstream", "slice", _PROF, None, "Share of time in which the graphics or compute engine was active"),
    ("DCGM_FI_PROF_SM_ACTIVE", 1002, "ratio", "gauge", "gpuboot", "slice", _PROF, None, "Share of cycles in which an SM had a warp; averaged over SMs"),
    ("DCGM_FI_PROF_SM_OCCUPANCY", 1003, "ratio", "gauge", "gpuboot", "slice", _PROF, None, "Resident warps as a share of the most possible"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1004, "ratio", "gauge", "upstream", "slice", _PROF, None, "Share of cycles in which the tensor pipe was active"),
    ("DCGM_FI_PROF_DRAM_ACTIVE", 1005, "ratio", "gauge", "upstream", "slice", _PROF, None, "Share of cycles in which device memory moved data"),
    ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1006, "ratio", "gauge", "gpuboot", "slice", _PROF, None, "Share of cycles in which the FP64 pipe was active"),
    ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1007, "ratio", "gauge", "gpuboot", "slice", _PROF, None, "Share of cycles in which the FP32 pipe was active"),
    ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1008, "ratio", "gauge", "gpuboot", "slice", _PROF, None, "Share of cycles in which the FP16 pipe was active"),
)

_MEMORY = _family(
    Family.MEMORY,
    ("DCGM_FI_DEV_FB_TOTAL", 250, "MiB", "gauge", "opt-in", "slice", (), None, "Device memory"),
    ("DCGM_FI_DEV_FB_FREE", 251, "MiB", "gauge", "upstream", "slice", (), None, "Free device memory"),
    ("DCGM_FI_DEV_FB_USED", 252, "MiB", "gauge", "upstream", "slice", (), None, "Used device memory"),
    ("DCGM_FI_DEV_FB_RESERVED", 253, "MiB", "gauge", "upstream", "slice", (), None, "Device memory reserved by the driver"),
    ("DCGM_FI_DEV_FB_USED_PERCENT", 254, "ratio", "gauge", "opt-in", "slice", (), None, "Used device memory as a share of all"),
)

_CLOCKS = _family(
    Family.CLOCKS,
    ("DCGM_FI_DEV_SM_CLOCK", 100, "MHz", "gauge", "upstream", "gpu", (), None, "SM clock frequency"),
    ("DCGM_FI_DEV_MEM_CLOCK", 101, "MHz", "gauge", "upstream", "gpu", (), None, "Memory clock frequency"),
    ("DCGM_FI_DEV_MAX_SM_CLOCK", 113, "MHz", "gauge", "gpuboot", "gpu", (), None, "Highest SM clock"),
)

_THROTTLING = _family(
    Family.THROTTLING,
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 112, "bitmask", "gauge", "gpuboot", "gpu", (), None, "Why clocks are held down: 1 idle 2 setting 4 power cap 8 hw slowdown 16 sync boost 32 sw thermal 64 hw thermal 128 power brake"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", 1420, "ns", "counter", "gpuboot", "gpu", (), _4_2, "Time held down by the power cap; normal under load"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS", 1421, "ns", "counter", "gpuboot", "gpu", (), _4_2, "Time held down by sync boost"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", 1422, "ns", "counter", "gpuboot", "gpu", (), _4_2, "Time slowed down by the driver for heat"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", 1423, "ns", "counter", "gpuboot", "gpu", (), _4_2, "Time slowed down by the hardware for heat"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", 1424, "ns", "counter", "gpuboot", "gpu", (), _4_2, "Time slowed down by the external power brake"),
    ("DCGM_EXP_CLOCK_EVENTS_TOTAL", None, "", "counter", "gpuboot", "gpu", _FIRST, _TOTALS, "Times a reason to hold clocks down began; by clock_event"),
    ("DCGM_EXP_CLOCK_EVENTS_COUNT", None, "", "gauge", "opt-in", "gpu", (), None, "Samples with a reason in the last five minutes; no counter"),
    ("DCGM_FI_DEV_POWER_VIOLATION", 240, "ns", "counter", "opt-in", "gpu", (), None, "Time throttled by power; in µs up to DCGM 4.0"),
    ("DCGM_FI_DEV_THERMAL_VIOLATION", 241, "ns", "counter", "opt-in", "gpu", (), None, "Time throttled by heat; in µs up to DCGM 4.0"),
    ("DCGM_FI_DEV_SYNC_BOOST_VIOLATION", 242, "ns", "counter", "opt-in", "gpu", (), None, "Time throttled by sync boost; in µs up to DCGM 4.0"),
    ("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 243, "ns", "counter", "opt-in", "gpu", (), None, "Time throttled by board limits; in µs up to DCGM 4.0"),
    ("DCGM_FI_DEV_LOW_UTIL_VIOLATION", 244, "ns", "counter", "opt-in", "gpu", (), None, "Time at low clocks for low utilization; in µs up to DCGM 4.0"),
    ("DCGM_FI_DEV_RELIABILITY_VIOLATION", 245, "ns", "counter", "opt-in", "gpu", (), None, "Time throttled by reliability limits; in µs up to DCGM 4.0"),
)

_HEAT = _family(
    Family.HEAT,
    ("DCGM_FI_DEV_MEMORY_TEMP", 140, "°C", "gauge", "upstream", "gpu", (Limit.MEMORY_SENSOR,), None, "Memory temperature"),
    ("DCGM_FI_DEV_GPU_TEMP", 150, "°C", "gauge", "upstream", "gpu", _NO_VGPU, None, "GPU temperature"),
    ("DCGM_FI_DEV_MEM_MAX_OP_TEMP", 151, "°C", "gauge", "gpuboot", "gpu", (Limit.MEMORY_SENSOR,), None, "Highest operating temperature of the memory"),
    ("DCGM_FI_DEV_GPU_TEMP_LIMIT", 153, "°C", "gauge", "gpuboot", "gpu", (), _4_1, "Degrees left before the GPU slows itself down"),
    ("DCGM_FI_DEV_SLOWDOWN_TEMP", 158, "°C", "gauge", "opt-in", "gpu", (), None, "Temperature at which the GPU slows itself down"),
    ("DCGM_FI_DEV_FAN_SPEED", 191, "%", "gauge", "opt-in", "gpu", (Limit.FAN,), None, "Fan speed"),
)

_POWER = _family(
    Family.POWER,
    ("DCGM_FI_DEV_POWER_USAGE", 155, "W", "gauge", "upstream", "gpu", _NO_VGPU, None, "Power draw"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 156, "mJ", "counter", "upstream", "gpu", _NO_VGPU, None, "Energy since the driver was loaded"),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", 160, "W", "gauge", "gpuboot", "gpu", (), None, "Power limit that was asked for"),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 164, "W", "gauge", "gpuboot", "gpu", (), None, "Power limit in force after all limiters"),
)

_PCIE = _family(
    Family.PCIE,
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 202, "", "counter", "upstream", "gpu", (), None, "PCIe retries"),
    ("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 235, "", "gauge", "gpuboot", "gpu", (), None, "PCIe generation possible"),
    ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 236, "lanes", "gauge", "gpuboot", "gpu", (), None, "PCIe lanes possible"),
    ("DCGM_FI_DEV_PCIE_LINK_GEN", 237, "", "gauge", "gpuboot", "gpu", (), None, "PCIe generation in use; falls when idle"),
    ("DCGM_FI_DEV_PCIE_LINK_WIDTH", 238, "lanes", "gauge", "gpuboot", "gpu", (), None, "PCIe lanes in use"),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", 1009, "B/s", "gauge", "upstream", "gpu", _PROF, None, "PCIe throughput from the GPU to the host"),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", 1010, "B/s", "gauge", "upstream", "gpu", _PROF, None, "PCIe throughput from the host to the GPU"),
    ("DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS", 1501, "", "counter", "opt-in", "gpu", (), _4_5, "PCIe errors that the link corrected"),
)

_LINKS = _family(
    Family.NVLINK,
    ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", 170, "", "gauge", "gpuboot", "gpu", (Limit.FABRIC,), None, "Fabric state: 0 none 1 not started 2 in progress 3 success 4 failure 5 unknown 6 driver too old to tell"),
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 409, "", "counter", "gpuboot", "gpu", _NVLINK, None, "NVLink flow-control CRC errors"),
    ("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 419, "", "counter", "gpuboot", "gpu", _NVLINK, None, "NVLink data CRC errors"),
    ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 429, "", "counter", "gpuboot", "gpu", _NVLINK, None, "NVLink replays"),
    ("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 439, "", "counter", "gpuboot", "gpu", _NVLINK, None, "NVLink recoveries"),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 449, "MB/s", "gauge", "upstream", "gpu", _NVLINK, None, "NVLink throughput over all links; a counter up to exporter 4.8.2"),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1011, "B/s", "gauge", "gpuboot", "gpu", _PROF_NVLINK, None, "NVLink throughput sent"),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", 1012, "B/s", "gauge", "gpuboot", "gpu", _PROF_NVLINK, None, "NVLink throughput received"),
    ("DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES", 1201, "B", "counter", "opt-in", "gpu", _NVLINK_5, None, "NVLink bytes sent over all links"),
    ("DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES", 1203, "B", "counter", "opt-in", "gpu", _NVLINK_5, None, "NVLink bytes received over all links"),
    ("DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS", 1205, "", "counter", "opt-in", "gpu", _NVLINK_5, None, "Packets dropped for want of buffers"),
    ("DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", 1206, "", "counter", "opt-in", "gpu", _NVLINK_5, None, "Packets received with errors"),
    ("DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", 1209, "", "counter", "opt-in", "gpu", _NVLINK_5, None, "Times a link's own errors exceeded the threshold"),
    ("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", 1211, "", "counter", "opt-in", "gpu", _NVLINK_5, None, "Link recoveries that brought the link back"),
    ("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", 1212, "", "counter", "opt-in", "gpu", _NVLINK_5, None, "Link recoveries that ended with the link down"),
    ("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", 1213, "", "counter", "opt-in", "gpu", _NVLINK_5, None, "Link recoveries of either outcome"),
    ("DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS", 1214, "", "counter", "opt-in", "gpu", _NVLINK_5, None, "Symbol errors received"),
    ("DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", 1216, "ratio", "gauge", "opt-in", "gpu", _NVLINK_5, _4_2, "Bit error rate before correction"),
    ("DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT", 1218, "ratio", "gauge", "opt-in", "gpu", _NVLINK_5, _4_2, "Bit error rate after correction"),
    ("DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS", 1219, "", "counter", "opt-in", "gpu", _NVLINK_5, _4_2, "Errors left after correction"),
    ("DCGM_EXP_P2P_STATUS", None, "", "gauge", "opt-in", "gpu", _NVLINK, None, "NVLink peer-to-peer state by peer"),
)

_MEMORY_HEALTH = _family(
    Family.ECC,
    ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 310, "", "counter", "gpuboot", "gpu", _ECC, None, "Corrected memory errors since the last reset"),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 311, "", "counter", "gpuboot", "gpu", _ECC, None, "Uncorrected memory errors since the last reset"),
    ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 312, "", "counter", "gpuboot", "gpu", _ECC, None, "Corrected memory errors over the GPU's life"),
    ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 313, "", "counter", "gpuboot", "gpu", _ECC, None, "Uncorrected memory errors over the GPU's life"),
    ("DCGM_FI_DEV_THRESHOLD_SRM", 346, "", "gauge", "gpuboot", "gpu", _AMPERE, _4_2, "1: too many SRAM errors"),
    ("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", 389, "", "gauge", "gpuboot", "gpu", _REMAPS, None, "Memory banks without spare rows"),
    ("DCGM_FI_DEV_RETIRED_SBE", 390, "", "counter", "gpuboot", "gpu", _PAGES, None, "Pages retired after corrected errors"),
    ("DCGM_FI_DEV_RETIRED_DBE", 391, "", "counter", "gpuboot", "gpu", _PAGES, None, "Pages retired after uncorrected errors"),
    ("DCGM_FI_DEV_RETIRED_PENDING", 392, "", "gauge", "gpuboot", "gpu", _PAGES, None, "1: pages wait for a reset to be retired"),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 393, "", "counter", "upstream", "gpu", _REMAPS, None, "Memory rows remapped after uncorrectable errors"),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 394, "", "counter", "upstream", "gpu", _REMAPS, None, "Memory rows remapped after correctable errors"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", 395, "", "gauge", "upstream", "gpu", _REMAPS, None, "1: a row could not be remapped; NVIDIA's criterion for replacement"),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", 396, "", "gauge", "gpuboot", "gpu", _REMAPS, None, "1: a row remap waits for a GPU reset"),
    ("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", 1507, "", "gauge", "gpuboot", "gpu", _AMPERE, _4_5, "1: memory cannot be repaired; replace the GPU"),
)

_HEALTH = _family(
    Family.HEALTH,
    ("DCGM_FI_DEV_XID_ERRORS", 230, "", "gauge", "upstream", "slice", _FIRST, None, "Last XID error; never returns to 0 by itself"),
    ("DCGM_EXP_XID_ERRORS_TOTAL", None, "", "counter", "gpuboot", "slice", _FIRST, _TOTALS, "XID errors by code since the exporter started"),
    ("DCGM_EXP_XID_ERRORS_COUNT", None, "", "gauge", "opt-in", "slice", (), None, "XID errors in the last five minutes by code; no counter"),
    ("DCGM_EXP_GPU_HEALTH_STATUS", None, "", "gauge", "gpuboot", "once", (), None, "DCGM's health verdict by health_watch: 0 pass 10 warn 20 fail"),
    ("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", 1523, "", "gauge", "gpuboot", "gpu", (Limit.RECENT_DRIVER,), _4_5, "What the driver asks for: 0 nothing 1 reset 2 reboot 3 drain P2P 4 drain and reset"),
)

_IDENTITY = _family(
    Family.IDENTITY,
    ("DCGM_FI_DRIVER_VERSION", 1, "", "label", "upstream", "gpu", (), None, "Driver version"),
    ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", 526, "", "gauge", "upstream", "gpu", (Limit.VGPU,), None, "1: vGPU licence in force"),
)
# fmt: on

FIELDS: tuple[Field, ...] = (
    *_ACTIVITY,
    *_PROFILING,
    *_MEMORY,
    *_CLOCKS,
    *_THROTTLING,
    *_HEAT,
    *_POWER,
    *_PCIE,
    *_LINKS,
    *_MEMORY_HEALTH,
    *_HEALTH,
    *_IDENTITY,
)
BY_NAME = {field.name: field for field in FIELDS}
UPSTREAM = tuple(field for field in FIELDS if field.tier == "upstream")
OWN_FIELDS = tuple(field for field in FIELDS if field.tier == "gpuboot")
OPT_IN = tuple(field for field in FIELDS if field.tier == "opt-in")
