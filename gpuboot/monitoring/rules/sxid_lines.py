"""SXids, the errors of NVSwitches, in lines of the kernel log: for diagnosis and what logs ship.

The forms are those of NVSWITCH_PRINT_SXID and NVSWITCH_REPORT_FATAL in NVIDIA's open kernel modules
(src/common/nvswitch/kernel/inc of 595.45.04): `nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): 20034,
Fatal, Link 28 LTSSM Fault Up`, or `Non-fatal`; lines of data follow, which name no severity. What
they ask for: NVIDIA's Fabric Manager User Guide (2025-11-14), NVSwitch errors, tables 21 to 24.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# as Python writes named groups; see xid_lines.PATTERN
PATTERN = (
    r"nvidia-(?P<switch>nvswitch\d+): SXid \(PCI:(?P<pci_bus_id>[0-9A-Fa-f:.]+)\): "
    r"(?P<sxid>\d+), (?P<detail>(?:(?P<severity>Fatal|Non-fatal), )?.*)$"
)
_LINE = re.compile(r"^(?:<\d+>)?(?:\[ *(?P<seconds>\d+)\.\d+\](?:\[ *[TC]\d+\])? )?.*?" + PATTERN)
# Neither a reset of GPUs nor of switches ends these: the guide's table of errors that are always
# fatal has the host restarted.
ALWAYS_FATAL = frozenset({12020, 22003, 22011, *range(23001, 23018)})


@dataclass(frozen=True)
class SxidLine:
    """An SXid as the kernel log has it.

    + switch: nvswitch0
    + text: without what the log writes before it
    + severity: "" in lines of data
    + seconds: since the host's boot; None where the line does not tell
    """

    code: int
    switch: str
    address: str
    text: str
    severity: Literal["Fatal", "Non-fatal", ""]
    seconds: int | None


def parse(line: str) -> SxidLine | None:
    """The SXid of a line of dmesg or of a log file; None for any other line."""
    match = _LINE.match(line)
    if match is None:
        return None
    severity: Literal["Fatal", "Non-fatal", ""] = ""
    if match["severity"]:
        severity = "Fatal" if match["severity"] == "Fatal" else "Non-fatal"
    return SxidLine(
        int(match["sxid"]),
        match["switch"],
        match["pci_bus_id"].lower(),
        line[line.index(f"nvidia-{match['switch']}: ") :].rstrip(),
        severity,
        int(match["seconds"]) if match["seconds"] else None,
    )
