"""XIDs in lines of the kernel log, as drivers and kernels write them."""

from __future__ import annotations

import pytest

from gpuboot.monitoring.rules.xid_lines import XidLine, parse_xid

FALLEN = "Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
# recorded: leptonai/gpud#1160 and #1174
FATAL = (
    "Xid (PCI:0000:00:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 "
    "(0x026001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
)
NONFATAL = (
    "Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
    "(0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)"
)
ALL_LINKS = (
    "Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 "
    "(0x000fe406 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
)
# NVIDIA/open-gpu-kernel-modules#1150
CAUSED = (
    "Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"[  885.2] NVRM: {FALLEN}", XidLine(79, "0000:3b:00", FALLEN, "", 885)),
        # CONFIG_PRINTK_CALLER, as SUSE, RHEL and newer Ubuntu kernels have it
        (f"[  885.234567][ T4711] NVRM: {FALLEN}", XidLine(79, "0000:3b:00", FALLEN, "", 885)),
        (f"[128.234567][    C3] NVRM: {FATAL}", XidLine(149, "0000:00:00", FATAL, "Fatal", 128)),
        (f"[1.5] NVRM: {NONFATAL}", XidLine(145, "0018:01:00", NONFATAL, "Nonfatal", 1)),
        (f"NVRM: {ALL_LINKS}", XidLine(149, "0019:01:00", ALL_LINKS, "Fatal", None)),
        (f"NVRM: {CAUSED}", XidLine(45, "0000:dc:00", CAUSED, "", None)),
        # no process is known, and no text
        ("[7.1] NVRM: Xid (PCI:0000:10:00): 63",
         XidLine(63, "0000:10:00", "Xid (PCI:0000:10:00): 63", "", 7)),
        ("[7.1] NVRM: Xid (PCI:0000:B3:00 GPU-I:05): 31, Ch 8",
         XidLine(31, "0000:b3:00", "Xid (PCI:0000:B3:00 GPU-I:05): 31, Ch 8", "", 7)),
        ("[7.1] NVRM: Xid (PCI:0000:b3:00 GPU-I:05 GPU-CI:00): 43, pid=1, name=x, Ch 8",
         XidLine(43, "0000:b3:00",
                 "Xid (PCI:0000:b3:00 GPU-I:05 GPU-CI:00): 43, pid=1, name=x, Ch 8", "", 7)),
        # a driver of the year 2014
        ("[7.1] NVRM: Xid (0000:03:00): 13, Graphics Exception",
         XidLine(13, "0000:03:00", "Xid (0000:03:00): 13, Graphics Exception", "", 7)),
        # a log file's own time is no time since boot
        ("Nov 25 01:02:03 gpu1 kernel: NVRM: Xid (PCI:0000:10:00): 48, x",
         XidLine(48, "0000:10:00", "Xid (PCI:0000:10:00): 48, x", "", None)),
        # a word in a program's name is no severity
        ("[7.1] NVRM: Xid (PCI:0000:10:00): 31, pid=3, name=Nonfatal XC, Ch 1",
         XidLine(31, "0000:10:00",
                 "Xid (PCI:0000:10:00): 31, pid=3, name=Nonfatal XC, Ch 1", "", 7)),
        ("[7.1] NVRM: GPU at PCI:0000:3b:00: GPU-6f1d", None),
        ("[7.1] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32", None),
    ],
)  # fmt: skip
def test_a_line_is_parsed(line: str, expected: XidLine | None) -> None:
    assert parse_xid(line) == expected
