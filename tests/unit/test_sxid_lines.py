"""SXids in lines of the kernel log, as drivers and kernels write them."""

from __future__ import annotations

import pytest

from gpuboot.monitoring.rules.xid_lines import ALWAYS_FATAL, XidLine, parse_sxid

# recorded: the data set LHRS-UM-FERI/MENTHOS-dataset-rootcause
FATAL = "nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): 20034, Fatal, Link 28 LTSSM Fault Up"
PLAIN_TEXT = (
    "nvidia-nvswitch4: SXid (PCI:0000:c6:00.0): 19084, Non-fatal, Link 29 AN1 Heartbeat Timeout "
    "Error (First)"
)
DATA = (
    "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 10002, Severity 5 Engine instance 00 Sub-engine "
    "instance 00"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"[  885.2] {FATAL}",
         XidLine(20034, "0000:c2:00.0", FATAL, "Fatal", 885)),
        (f"[  885.234567][ T4711] {FATAL}",
         XidLine(20034, "0000:c2:00.0", FATAL, "Fatal", 885)),
        (f"Nov 25 01:02:03 gpu1 kernel: {PLAIN_TEXT}",
         XidLine(19084, "0000:c6:00.0", PLAIN_TEXT, "Non-fatal", None)),
        (f"[7.1] {DATA}", XidLine(10002, "0000:c4:00.0", DATA, "", 7)),
        ("[7.1] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", None),
        ("[7.1] nvidia-nvswitch0: open (major=510)", None),
    ],
)  # fmt: skip
def test_lines(line: str, expected: XidLine | None) -> None:
    assert parse_sxid(line) == expected


def test_errors_that_no_reset_ends() -> None:
    assert {12020, 22003, 22011, 23001, 23017} <= ALWAYS_FATAL
    assert not {20034, 11001, 19084} & ALWAYS_FATAL
