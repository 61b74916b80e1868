"""Errors of NVSwitches, as the kernel log has them.

Recorded: LHRS-UM-FERI/MENTHOS-dataset-rootcause; codes: NVIDIA's Fabric Manager User Guide.
"""

from __future__ import annotations

from tests.unit.diagnose_judged import LIKELY, EvidenceCase
from tests.unit.diagnose_site import Case, gpu_host, site

_SXID = "kernel\t[{at}.2] nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): {text}"
_LTSSM = "20034, Fatal, Link 28 LTSSM Fault Up"
_FATAL = _SXID.format(at=89000, text=_LTSSM)
_DATA = _SXID.format(at=89000, text="20034, Data {0x00000000, 0x00000000}")
_NON_FATAL = _SXID.format(
    at=89000, text="19084, Non-fatal, Link 29 AN1 Heartbeat Timeout Error (First)"
)
_ALWAYS = _SXID.format(at=89000, text="12020, Fatal, Link 02 egress sequence ID error (First)")
_LOADED = "kernel\t[89100.1] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.91.07"

CASES = (
    Case(
        "nvswitch-fatal",
        site(gpu_host(_NON_FATAL, _FATAL, _DATA)),
        site(gpu_host(_NON_FATAL, _DATA)),
        "SXid (PCI:0000:c2:00.0): 20034, Fatal, Link 28",
    ),
    Case(
        "nvswitch-always-fatal",
        site(gpu_host(_ALWAYS)),
        site(gpu_host(_FATAL)),
        "12020, Fatal, Link 02",
    ),
)
EVIDENCE_ROWS = (
    EvidenceCase("nvswitch-fatal", "present", site(gpu_host(_FATAL)), LIKELY),
    EvidenceCase(
        "nvswitch-fatal", "old", site(gpu_host(_SXID.format(at=86000, text=_LTSSM))), None
    ),
    EvidenceCase("nvswitch-fatal", "old", site(gpu_host(_FATAL, _LOADED)), None),
    EvidenceCase("nvswitch-fatal", "another", site(gpu_host(_ALWAYS)), None),
    EvidenceCase("nvswitch-always-fatal", "present", site(gpu_host(_ALWAYS)), LIKELY),
    EvidenceCase("nvswitch-always-fatal", "another", site(gpu_host(_FATAL)), None),
    EvidenceCase("nvswitch-always-fatal", "old", site(gpu_host(_ALWAYS, _LOADED)), None),
)
