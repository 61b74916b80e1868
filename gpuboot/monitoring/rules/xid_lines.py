"""XIDs in lines of the kernel log: one pattern for diagnosis and for what logs ship.

The forms are those of `krcReportXid_IMPL` in NVIDIA's open kernel modules (kernel_rc.c, R595):
`NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 79, pid=…, name=…, message`, where the instances of
MIG and the process may be absent; drivers before R340 wrote no `PCI:`. The XIDs of NVLink 5 (144 to
150) have their severity in the message: `149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x…)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# as Python writes named groups; Onigmo, which Fluent Bit uses, has no P there
PATTERN = (
    r"NVRM: Xid \((?:PCI:)?(?P<pci_bus_id>[0-9A-Fa-f:.]+)"
    r"(?: GPU-I:(?P<gpu_instance>\d+))?(?: GPU-CI:(?P<compute_instance>\d+))?\): "
    r"(?P<xid>\d+)(?:, (?P<detail>(?:\w+ (?P<severity>Fatal|Nonfatal) XC\d)?.*))?$"
)
# seconds since boot; kernels with CONFIG_PRINTK_CALLER add the thread or CPU: [  12.3][ T1234]
_LINE = re.compile(r"^(?:<\d+>)?(?:\[ *(?P<seconds>\d+)\.\d+\](?:\[ *[TC]\d+\])? )?.*?" + PATTERN)


@dataclass(frozen=True)
class XidLine:
    """An XID as the kernel log has it.

    + text: without what the log writes before it
    + address: of the GPU on the PCI bus, without its function: 0000:3b:00
    + severity: as the driver says it for NVLink 5; "" where it says none
    + seconds: since the host's boot; None where the line does not tell
    """

    code: int
    address: str
    text: str
    severity: Literal["Fatal", "Nonfatal", ""]
    seconds: int | None


def parse(line: str) -> XidLine | None:
    """The XID of a line of dmesg or of a log file; None for any other line."""
    match = _LINE.match(line)
    if match is None:
        return None
    severity: Literal["Fatal", "Nonfatal", ""] = ""
    if match["severity"]:
        severity = "Fatal" if match["severity"] == "Fatal" else "Nonfatal"
    return XidLine(
        int(match["xid"]),
        match["pci_bus_id"].lower(),
        line[line.index("NVRM: ") + len("NVRM: ") :],
        severity,
        int(match["seconds"]) if match["seconds"] else None,
    )
