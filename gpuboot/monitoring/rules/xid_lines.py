"""XIDs of GPUs and SXids of NVSwitches in lines of the kernel log, for diagnosis and shipped logs.

The forms are those of `krcReportXid_IMPL` in NVIDIA's open kernel modules (kernel_rc.c, R595):
`NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 79, pid=…, name=…, message`, where the instances of
MIG and the process may be absent; drivers before R340 wrote no `PCI:`. The XIDs of NVLink 5 (144 to
150) have their severity in the message: `149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x…)`.

SXids are those of NVSWITCH_PRINT_SXID and NVSWITCH_REPORT_FATAL (src/common/nvswitch/kernel/inc of
595.45.04): `nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): 20034, Fatal, Link 28 LTSSM Fault Up`, or
`Non-fatal`; lines of data follow, which name no severity. What they ask for: NVIDIA's Fabric
Manager User Guide (2025-11-14), NVSwitch errors, tables 21 to 24.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# as Python writes named groups; Onigmo, which Fluent Bit uses, has no P there
XID = (
    r"NVRM: Xid \((?:PCI:)?(?P<pci_bus_id>[0-9A-Fa-f:.]+)"
    r"(?: GPU-I:(?P<gpu_instance>\d+))?(?: GPU-CI:(?P<compute_instance>\d+))?\): "
    r"(?P<xid>\d+)(?:, (?P<detail>(?:\w+ (?P<severity>Fatal|Nonfatal) XC\d)?.*))?$"
)
SXID = (
    r"nvidia-(?P<switch>nvswitch\d+): SXid \(PCI:(?P<pci_bus_id>[0-9A-Fa-f:.]+)\): "
    r"(?P<sxid>\d+), (?P<detail>(?:(?P<severity>Fatal|Non-fatal), )?.*)$"
)
# seconds since boot; kernels with CONFIG_PRINTK_CALLER add the thread or CPU: [  12.3][ T1234]
_BEGIN = r"^(?:<\d+>)?(?:\[ *(?P<seconds>\d+)\.\d+\](?:\[ *[TC]\d+\])? )?.*?"
_XID_LINE, _SXID_LINE = re.compile(_BEGIN + XID), re.compile(_BEGIN + SXID)
# Neither a reset of GPUs nor of switches ends these: the guide's table of errors that are always
# fatal has the host restarted.
ALWAYS_FATAL = frozenset({12020, 22003, 22011, *range(23001, 23018)})


@dataclass(frozen=True)
class XidLine:
    """An XID or SXid as the kernel log has it.

    + address: on the PCI bus: 0000:3b:00 of a GPU, without its function; 0000:c2:00.0 of a switch
    + text: without what the log writes before it
    + severity: as the driver says it, `Fatal` and the like; "" where it says none
    + seconds: since the host's boot; None where the line does not tell
    """

    code: int
    address: str
    text: str
    severity: str
    seconds: int | None


def parse_xid(line: str) -> XidLine | None:
    """The XID of a line of dmesg or of a log file; None for any other line."""
    match = _XID_LINE.match(line)
    return _xid_line(match, match["xid"], "Xid (") if match else None


def parse_sxid(line: str) -> XidLine | None:
    """The SXid of a line of dmesg or of a log file; None for any other line."""
    match = _SXID_LINE.match(line)
    return _xid_line(match, match["sxid"], "nvidia-nvswitch") if match else None


def _xid_line(match: re.Match[str], code: str, begin: str) -> XidLine:
    """+ begin: how the text begins"""
    return XidLine(
        int(code),
        match["pci_bus_id"].lower(),
        match.string[match.string.index(begin) :].rstrip(),
        match["severity"] or "",
        int(match["seconds"]) if match["seconds"] else None,
    )
