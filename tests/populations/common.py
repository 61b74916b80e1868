"""What several kinds of GPU have in common."""

from __future__ import annotations

from gpuboot.telemetry.fields import Limit
from tests.populations import sources as s
from tests.populations.model import Lack, Source, Values, lack, values, zero

PROFILED = (
    "PROF_GR_ENGINE_ACTIVE PROF_SM_ACTIVE PROF_SM_OCCUPANCY PROF_PIPE_TENSOR_ACTIVE "
    "PROF_DRAM_ACTIVE PROF_PIPE_FP64_ACTIVE PROF_PIPE_FP32_ACTIVE PROF_PIPE_FP16_ACTIVE"
)
ECC = "ECC_SBE_VOL_TOTAL ECC_DBE_VOL_TOTAL ECC_SBE_AGG_TOTAL ECC_DBE_AGG_TOTAL"
REMAPPED = (
    "UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE ROW_REMAP_PENDING "
    "BANKS_REMAP_ROWS_AVAIL_NONE"
)
THROTTLED = (
    "CLOCKS_EVENT_REASON_SW_POWER_CAP_NS CLOCKS_EVENT_REASON_SYNC_BOOST_NS "
    "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS "
    "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS"
)
NVLINK = (
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL NVLINK_CRC_DATA_ERROR_COUNT_TOTAL "
    "NVLINK_REPLAY_ERROR_COUNT_TOTAL NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
)
VIDEO = "ENC_UTIL DEC_UTIL"

# what each kind shows when it is well, idle and busy
EVERY_KIND: tuple[Values, ...] = (zero(s.NO_HEALTH, "EXP_GPU_HEALTH_STATUS"),)
NO_EVENTS: Lack = lack("nothing has happened yet", s.FIRST, limits=[Limit.AFTER_FIRST])
NO_PROFILING = lack("no profiling", s.NO_PROFILING, limits=[Limit.PROFILING])
NO_ECC = lack("no ECC memory", s.NVML, limits=[Limit.ECC])
NO_REMAP = lack("retires pages, remaps no rows", s.NVML, limits=[Limit.AMPERE])
NO_PAGES = lack("remaps rows, retires no pages", s.NVML, limits=[Limit.BEFORE_AMPERE])
NO_NVLINK = lack("no NVLink", s.NVML, limits=[Limit.NVLINK])
NO_TLIMIT = lack("no margin of temperature", s.NVML, "GPU_TEMP_LIMIT")
OLD_DRIVER = lack("driver too old for it", s.OLD_DRIVER, limits=[Limit.RECENT_DRIVER])
MIG_LACKS = (
    lack("no remapped rows under MIG", s.A100_MIXED, REMAPPED),
    lack("no utilization under MIG", s.H100_MIG, limits=[Limit.NO_MIG]),
    lack("no NVLink under MIG", s.MIG_NO_NVLINK, limits=[Limit.NVLINK]),
)


def profiled(share: float, source: Source = s.HEALTHY) -> tuple[Values, ...]:
    """Profiling fields of a GPU that is so busy, 0 to 1."""
    names = dict.fromkeys(PROFILED.split(), share)
    pcie = {"PROF_PCIE_TX_BYTES": 29285 + 2e9 * share, "PROF_PCIE_RX_BYTES": 30378 + 2e9 * share}
    return (values(source, **names, **pcie),)


def pcie(source: Source, gen: int, gen_max: int, width: int, width_max: int) -> Values:
    return values(
        source,
        PCIE_LINK_GEN=gen,
        PCIE_MAX_LINK_GEN=gen_max,
        PCIE_LINK_WIDTH=width,
        PCIE_MAX_LINK_WIDTH=width_max,
    )


def power(source: Source, draw: float, limit: float) -> Values:
    return values(source, POWER_USAGE=draw, POWER_MGMT_LIMIT=limit, ENFORCED_POWER_LIMIT=limit)


def framebuffer(source: Source, free: float, used: float, reserved: float) -> Values:
    return values(source, FB_FREE=free, FB_USED=used, FB_RESERVED=reserved)
