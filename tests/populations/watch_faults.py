"""Faults that DCGM's health watches tell of, and NVLink's own counters: the opposites of a derived
value by which a GPU is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.populations import sources as s
from tests.populations.faults import Fault
from tests.populations.page import Page

_SWITCHED = frozenset({"h100-sxm", "b200-hgx"})  # several GPUs, with links between them
_HEALTH, _FAIL, _WARN = (
    frozenset({entry}) for entry in ("health", "GPUHealthFail", "GPUHealthWarn")
)
_REPLAYS = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
_CRC = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"
_NONE: frozenset[str] = frozenset()


def _first_gpu_watch(watch: str, code: str, level: int = 20) -> Callable[[Page], Page]:
    """A health watch of the first GPU. + code: without DCGM_FR_"""
    watches = {(0, watch): (f"DCGM_FR_{code}", level)}
    return lambda page: replace(page, watches=watches)


WATCH_FAULTS = (
    Fault(
        "DCGM finds faulty memory", _HEALTH, _FAIL, page=_first_gpu_watch("MEM", "FAULTY_MEMORY")
    ),
    Fault(
        "DCGM: the GPU fell off the bus",
        _HEALTH,
        _FAIL,
        page=_first_gpu_watch("ALL", "FALLEN_OFF_BUS"),
    ),
    Fault(
        "a link between GPUs is down",
        _HEALTH,
        _FAIL,
        only=_SWITCHED,
        page=_first_gpu_watch("NVLINK", "NVLINK_DOWN"),
    ),
    Fault(
        "NVLink 5 errors, as they happen",
        _HEALTH,
        _FAIL,
        only=frozenset({"b200-hgx", "gb10"}),
        page=_first_gpu_watch("NVLINK", "NVLINK_ERROR_CRITICAL"),
    ),
    Fault(
        "the fabric degrades bandwidth",
        _HEALTH,
        _FAIL,
        page=_first_gpu_watch("NVLINK", "FIELD_VIOLATION"),
    ),
    Fault(
        "DCGM has a result that nobody knows",
        _NONE,
        _WARN,
        page=_first_gpu_watch("NVLINK", "OF_NEXT_YEAR"),
    ),
    Fault(
        "DCGM warns of the inforom",
        _NONE,
        _WARN,
        page=_first_gpu_watch("INFOROM", "CORRUPT_INFOROM", 10),
    ),
    Fault(
        "NVLink replays for minutes",
        _NONE,
        frozenset({"GPUNvlinkErrors"}),
        needs=(_REPLAYS,),
        page=_first_gpu_watch("NVLINK", "NVLINK_ERROR_CRITICAL"),
        rising={_REPLAYS: 2},
    ),
    Fault(
        "NVLink corrupts data",
        _NONE,
        frozenset({"GPUNvlinkCrcErrors"}),
        needs=(_CRC,),
        page=_first_gpu_watch("NVLINK", "NVLINK_ERROR_CRITICAL"),
        rising={_CRC: 30000},
    ),
)
# derivation -> faults by which it is otherwise, and a GPU is broken
BROKEN: dict[str, list[str]] = {
    s.NO_HEALTH.origin: [entry.name for entry in WATCH_FAULTS if not entry.rising],
    s.HEALTHY.origin: [
        *(entry.name for entry in WATCH_FAULTS if entry.rising),
        "an uncorrectable memory error",
        "a row cannot be remapped",
        "heat slows a GPU down",
    ],
    s.NO_FABRIC.origin: ["the fabric is not ready"],
    s.OLD_DRIVER.origin: ["a GPU requires a reset"],
    s.FIRST.origin: ["an XID of a program", "a fatal XID, and the plugin takes the GPU away"],
    s.NVML.origin: ["a remap waits for a reset, under MIG"],
    s.LOADED.origin: ["the PCIe link is at generation 1 under load", "heat slows a GPU down"],
    s.HOPPER.origin: ["the fabric is not ready", "the PCIe link is at generation 1 under load"],
    s.ENERGY.origin: ["the exporter's values stand still"],
}
