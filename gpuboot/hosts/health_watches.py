"""What the results of DCGM's health watches mean: the table that alerts, proof, repair and the
host's timer read.

DCGM fails cards that are well: it looks at counters since the last reset, at links that a board
does not have, at a daemon that nobody needs. So a result is judged by its error code, by the card,
and by what is measured of it otherwise. Codes, levels and texts: modules/health/DcgmHealthWatch.cpp
and dcgmlib/dcgm_errors.h of DCGM 4.6.0; names as dcgm-exporter 4.8 writes them
(internal/pkg/collector/gpu_health_collector.go). It shows one result for each watch: the last.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from gpuboot.config.support import Source

SOURCE = Source(date(2026, 7, 6), "NVIDIA/DCGM v4.6.0")
Severity = Literal["critical", "warning", "info"]
WARNS, FAILS = 10, 20  # dcgm_structs.h, dcgmHealthWatchResults_t
OK = "DCGM_FR_OK"

# Product names of NVML, without what comes before and after; the label nvidia.com/gpu.product has
# dashes for spaces.
BEFORE_BLACKWELL = (
    r".*\b(Tesla|Quadro|TITAN|GTX|Ada|CMP|RTX[ -]A\d+|RTX[ -][234]0[5-9]0|[AHKLPTV]\d+[A-Z]?|GH200)"
    r"\b.*"
)
BLACKWELL = r".*\b(G?B\d+[A-Z]?|Blackwell|RTX[ -]50[5-9]0)\b.*"
# boards on which the links of several GPUs are up; bridges between PCIe cards may be there or not
LINKED = r".*(SXM.*|HBM3e?|H200|H20(-3e)?|H800|\bG?B[123]00)"
Cards = Literal["any", "before Blackwell", "Blackwell", "linked", "used"]
MODELS: dict[Cards, str] = {
    "before Blackwell": BEFORE_BLACKWELL,
    "Blackwell": BLACKWELL,
    "linked": LINKED,
    "used": ".*",
}


@dataclass(frozen=True)
class Card:
    """What is known of a card.

    + model: its product name; other_gpus: other GPUs of its node
    + used: its links carried data while DCGM found none of them down
    """

    model: str = ""
    other_gpus: int = 0
    used: bool = False

    def is_one_of(self, cards: Cards) -> bool:
        """Whether the card is known to be of these."""
        if cards in ("any", "used"):
            return cards == "any" or self.used
        fits = re.fullmatch(MODELS[cards], self.model) is not None
        return fits and (cards != "linked" or self.other_gpus > 0)


UNKNOWN = Card()


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What one error code of a watch means on some cards.

    + codes: as the exporter names it; the first is ours
    + watches: in which it comes
    + cards: of which this is true; the first line that fits a card counts
    + fails, warns: what a FAIL and a WARN are to us
    + most: the highest level that DCGM gives it
    + text: a part of the sentence by which `dcgmi health` tells of it, a regular expression
    + sign: it may be the second sign beside an XID: DCGM did not make it of one
    + cause: where the severity is not DCGM's own: what is looked at instead
    """

    codes: tuple[str, ...]
    watches: tuple[str, ...]
    cards: Cards = "any"
    fails: Severity = "critical"
    warns: Severity = "warning"
    most: int = FAILS
    text: str = ""
    sign: bool = True
    cause: str = ""

    def severity(self, level: float) -> Severity:
        """+ level: of DCGM, `WARNS` or `FAILS`"""
        return self.fails if level >= FAILS else self.warns


def _means(
    code: str, watches: str, text: str, *, also: str = "", cards: Cards = "any",
    fails: Severity = "critical", warns: Severity = "warning", highest: int = FAILS,
    sign: bool = True, cause: str = "",
) -> Meaning:  # fmt: skip
    names = tuple(f"DCGM_FR_{name}" for name in (code, *also.split()))
    return Meaning(
        codes=names, watches=tuple(watches.split()), cards=cards, fails=fails, warns=warns,
        most=highest, text=text, sign=sign, cause=cause,
    )  # fmt: skip


_EVERY = "PCIE NVLINK MEM SM INFOROM THERMAL POWER DRIVER ALL"
_XID = "it comes from an XID and stays until DCGM restarts: alerts on XIDs tell of that"
_RESET = (
    "counters since the last reset are not 0, which is so of cards that are well; how fast they "
    "rise: GPUNvlinkErrors, GPUNvlinkCrcErrors"
)
_DOWN = "the board has fewer links than its GPU; the check `nvlink` compares it with its neighbours"
_FABRIC = (
    "a driver that is too old to tell of a fabric has it too; its state: GPUFabricNotReady, and "
    "the check `nvidia-smi`"
)
_IMEX = "no IMEX daemon runs: it does where a job uses NVLink between machines"
MEANINGS = (
    # of XIDs; ALL is of those that DCGM calls devastating
    _means("XID_ERROR", _EVERY, r"Detected XID", warns="info", sign=False, cause=_XID),
    _means("CONTAINED_ERROR", "ALL", r"had a contained error", also="UNKNOWN(131)", warns="info",
           highest=WARNS, sign=False, cause=_XID),
    _means("UNCONTAINED_ERROR", "ALL", r"had an uncontained error", sign=False),
    _means("FALLEN_OFF_BUS", "ALL", r"has fallen off the bus", sign=False),
    _means("PENDING_PAGE_RETIREMENTS", "MEM", r"pending retired page", warns="info", highest=WARNS,
           sign=False, cause=_XID),
    # memory
    _means("VOLATILE_DBE_DETECTED", "MEM", r"volatile double-bit ECC error"),
    _means("RETIRED_PAGES_LIMIT", "MEM", r"or more retired pages"),
    _means("RETIRED_PAGES_DBE_LIMIT", "MEM", r"retired pages due to DBEs"),
    _means("ROW_REMAP_FAILURE", "MEM", r"row remapping failed"),
    _means("FAULTY_MEMORY", "MEM", r"faulty memory elements"),
    _means("UNCORRECTABLE_ROW_REMAP_LIMIT", "MEM", r"uncorrectable row remap limit",
           also="UNKNOWN(132)", highest=WARNS),
    _means("UNCORRECTABLE_ROW_REMAP", "MEM", r"rows were remapped", highest=WARNS),
    _means("PENDING_ROW_REMAP", "MEM", r"row remappings are pending", highest=WARNS),
    # PCIe, inforom, driver
    _means("PCI_REPLAY_RATE", "PCIE", r"PCIe replays per minute", highest=WARNS),
    _means("CORRUPT_INFOROM", "INFOROM", r"corrupt InfoROM", highest=WARNS),
    _means("GPU_RECOVERY_RESET", "DRIVER", r"\(GPU_RESET\)"),
    _means("GPU_RECOVERY_REBOOT", "DRIVER", r"\(NODE_REBOOT\)"),
    _means("GPU_RECOVERY_DRAIN_P2P", "DRIVER", r"\(DRAIN_P2P\)", highest=WARNS),
    _means("GPU_RECOVERY_DRAIN_RESET", "DRIVER", r"\(DRAIN_AND_RESET\)"),
    # heat and power: DCGM warns of any moment in the last minute, and at the power limit of each
    _means("CLOCKS_EVENT_THERMAL", "THERMAL", r"due to thermal violation",
           also="CLOCK_THROTTLE_THERMAL", fails="warning", highest=WARNS, sign=False,
           cause="for how long: GPUThermalThrottle"),
    _means("CLOCKS_EVENT_POWER", "POWER", r"due to power violation", also="CLOCK_THROTTLE_POWER",
           fails="warning", warns="info", highest=WARNS, sign=False,
           cause="a card at its power limit is well; what is not: GPUPowerBrake"),
    _means("POWER_UNREADABLE", "POWER", r"Cannot reliably read the power", fails="warning",
           highest=WARNS, sign=False),
    _means("FIELD_THRESHOLD_DBL", "THERMAL POWER", r"which is above the threshold",
           fails="warning", sign=False),
    # NVLink
    _means("NVLINK_ERROR_CRITICAL", "NVLINK", "", cards="before Blackwell", fails="info",
           warns="info", cause=_RESET),
    _means("NVLINK_ERROR_CRITICAL", "NVLINK", "", cards="Blackwell", warns="info",
           cause="links were recovered since the last reset"),
    _means("NVLINK_ERROR_CRITICAL", "NVLINK", r"NvLink errors on GPU \d+.s NVLink \(should be 0\)",
           fails="warning", warns="info", cause="of this model it is not known what DCGM counts"),
    _means("NVLINK_DOWN", "NVLINK", "", cards="linked"),
    _means("NVLINK_DOWN", "NVLINK", "", cards="used", fails="warning"),
    _means("NVLINK_DOWN", "NVLINK", r"NvLink link -?\d+ is currently down", fails="info",
           warns="info", cause=_DOWN),
    _means("NVLINK_DOWN", "NVSWITCH NVSWITCH_FATAL", ""),
    _means("NVLINK_ERROR_THRESHOLD", "NVLINK", r"NvLink errors on GPU \d+.s NVLink which exceeds",
           highest=WARNS),
    _means("NVLINK_CRC_ERROR_THRESHOLD", "NVLINK", r"NvLink errors found occuring per second"),
    _means("NVLINK_EFFECTIVE_BER_THRESHOLD", "NVLINK", r"Detected effective BER"),
    _means("NVLINK_SYMBOL_BER_THRESHOLD", "NVLINK", r"Detected symbol BER"),
    _means("FIELD_VIOLATION", "NVLINK CONNECTX ConnectX", r"Fabric Health:|ConnectX entity"),
    # what the exporter's code leaves open, the text tells
    _means("FABRIC_PROBE_STATE", "NVLINK", r"Fabric State is NvmlTooOld", fails="info",
           warns="info", cause=_FABRIC),
    _means("FABRIC_PROBE_STATE(state)", "NVLINK", r"Fabric State is (?!NvmlTooOld)"),
    # of the machine, not of a card; the exporter leaves it out. -3: nothing answers
    _means("IMEX_UNHEALTHY", "NVLINK", r"IMEX daemon status is -3\b", fails="info", warns="info",
           sign=False, cause=_IMEX),
    _means("IMEX_UNHEALTHY(state)", "NVLINK", r"IMEX (domain|daemon) status is (?!-3\b)",
           fails="warning", sign=False),
    # NVSwitches; `dcgmi health` has no name for these watches
    _means("NVSWITCH_FATAL_ERROR", "NVSWITCH NVSWITCH_FATAL", r"Detected fatal errors on NvSwitch"),
    _means("NVSWITCH_NON_FATAL_ERROR", "NVSWITCH NVSWITCH_NONFATAL",
           r"Detected nonfatal errors on NvSwitch", highest=WARNS),
)  # fmt: skip
# watches of which another one of ours decides, whatever their code
HEAT_AND_POWER = frozenset({"THERMAL", "POWER"})


def meaning(watch: str, code: str, card: Card) -> Meaning | None:
    """What a result means; None: the table does not have it.

    + watch, code: the exporter's labels health_watch and health_error_code
    """
    for entry in MEANINGS:
        if code in entry.codes and watch in entry.watches and card.is_one_of(entry.cards):
            return entry
    return None


def severity(watch: str, code: str, level: float, card: Card) -> Severity:
    """What a result is to us; what the table does not have is a warning."""
    known_meaning = meaning(watch, code, card)
    return known_meaning.severity(level) if known_meaning else "warning"


def texts() -> list[dict[str, str | int]]:
    """The meanings by text, for the host's timer, whose answers have no codes.

    `most` bounds the level: the answer has one of all results of a watch.
    """
    return [
        {"code": entry.codes[0], "like": entry.text, "most": entry.most}
        for entry in MEANINGS
        if entry.text
    ]
