"""The program that tells node-exporter of fatal errors of NVSwitches, on lines of kernels."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from gpuboot.hosts import nvswitch_errors

_FATAL = "nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): 20034, Fatal, Link 28 LTSSM Fault Up"
_LATER = "nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12020, Fatal, Link 02 seqid"
_OTHER_LINES = (
    "[  90.1] nvidia-nvswitch4: SXid (PCI:0000:c6:00.0): 19084, Non-fatal, Link 29 AN1\n"
    "[  90.2] nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): 20034, Data {0x00000000, 0x00000000}\n"
    "[  90.3] NVRM: Xid (PCI:0000:3b:00): 74, pid=1, NVLink: fatal error detected on link 6\n"
)
_LOADED = "[  95.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.91.07\n"


def _run(root: Path, kernel: str, *, fails: bool = False) -> subprocess.CompletedProcess[str]:
    (root / "kernel").write_text(kernel)
    dmesg = root / "dmesg"
    dmesg.write_text(f"#!/bin/sh\ncat {root}/kernel\nexit {int(fails)}\n")
    dmesg.chmod(0o755)
    program = re.sub(r"PATH=\S+", f"PATH={root}:/usr/bin:/bin", nvswitch_errors.program(), count=1)
    return subprocess.run(
        ["sh", "-c", program, "gpuboot-nvswitch-errors", "gpu1", str(root / "metrics")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def _read_metrics(root: Path) -> dict[str, float]:
    """Switch and SXid -> seconds since the host's boot."""
    text = (root / "metrics/gpuboot_nvswitch.prom").read_text()
    booted = time.time() - float(Path("/proc/uptime").read_text().split()[0])
    pattern = nvswitch_errors.METRIC + r'\{node="gpu1",switch="(\w+)",sxid="(\d+)"\} (\d+)'
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    matches = [re.fullmatch(pattern, row) for row in rows]
    return {f"{match[1]} {match[2]}": float(match[3]) - booted for match in matches if match}


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("", {}),
        (_OTHER_LINES, {}),
        (f"[  88.123456] {_FATAL}\n{_OTHER_LINES}", {"nvswitch0 20034": 88}),
        # CONFIG_PRINTK_CALLER; the last one of each counts
        (f"[  88.1][ T47] {_FATAL}\n[  99.1][    C3] {_FATAL}\n[ 100.9] {_LATER}\n",
         {"nvswitch0 20034": 99, "nvswitch3 12020": 100}),
        # the driver was loaded again
        (f"[  88.1] {_FATAL}\n{_LOADED}[  99.1] {_LATER}\n", {"nvswitch3 12020": 99}),
    ],
)  # fmt: skip
def test_what_it_tells(tmp_path: Path, kernel: str, expected: dict[str, float]) -> None:
    result = _run(tmp_path, kernel)
    assert (result.returncode, result.stderr) == (0, "")
    assert _read_metrics(tmp_path) == pytest.approx(expected, abs=2)
    assert [path.name for path in (tmp_path / "metrics").iterdir()] == ["gpuboot_nvswitch.prom"]


def test_a_kernel_that_notes_no_times_has_them_now(tmp_path: Path) -> None:
    _run(tmp_path, f"{_FATAL}\n")
    booted = time.time() - float(Path("/proc/uptime").read_text().split()[0])
    assert _read_metrics(tmp_path)["nvswitch0 20034"] == pytest.approx(time.time() - booted, abs=2)


def test_a_kernel_log_that_cannot_be_read_is_an_error_and_no_good_news(tmp_path: Path) -> None:
    _run(tmp_path, f"[  88.1] {_FATAL}\n")
    assert _run(tmp_path, "", fails=True).returncode != 0
    assert "nvswitch0 20034" in _read_metrics(tmp_path)


def test_units_call_it_for_this_node() -> None:
    service, timer = nvswitch_errors.units("gpu1", "/metrics").values()
    assert f"ExecStart={nvswitch_errors.PROGRAM} gpu1 /metrics\n" in service
    assert "OnUnitInactiveSec=1min" in timer
    paths = {*nvswitch_errors.units("gpu1", "/metrics"), nvswitch_errors.PROGRAM}
    assert paths < set(nvswitch_errors.traces("/metrics"))
