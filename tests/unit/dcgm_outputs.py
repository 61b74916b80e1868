"""What dcgmi prints, by the sources of NVIDIA/DCGM v4.6.0.

dcgmi/Health.cpp and DcgmiOutput.h make health's nesting (`value`, `overflow`, `children`),
dcgmi/Query.cpp the list of GPUs, dcgmi/Diag.cpp and testing/python3/dcgm_diag_schema.json a
diagnosis.
"""

from __future__ import annotations

import json
from typing import Any

UUIDS = ("GPU-11111111-2222-3333-4444-000000000000", "GPU-11111111-2222-3333-4444-000000000001")
DISCOVERY = f"""\
2 GPUs found (Active).
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA H100 80GB HBM3                                          |
|        | PCI Bus ID: 00000000:1B:00.0                                         |
|        | Device UUID: {UUIDS[0]}                |
+--------+----------------------------------------------------------------------+
| 1      | Name: NVIDIA H100 80GB HBM3                                          |
|        | PCI Bus ID: 00000000:29:00.0                                         |
|        | Device UUID: {UUIDS[1]}                |
+--------+----------------------------------------------------------------------+
1 NvSwitch found.
+-----------+
| Switch ID |
+-----------+
| 0         |
+-----------+
"""
NO_ENGINE = """\
Error: unable to establish a connection to the specified host: localhost
Error: Unable to connect to host engine. Host engine connection invalid/disconnected
"""
WATCHES = (
    "PCIe", "NVLINK", "Memory", "SM", "InfoROM", "Thermal", "Power", "Driver", "NvSwitch NF",
    "NvSwitch F", "ConnectX",
)  # fmt: skip
OFF = frozenset({"SM"})  # `-s a` leaves it out


def watches(on: bool = True) -> str:
    """`health -f -j`: with a line of text before its JSON."""
    body = {name: {"value": "On" if on and name not in OFF else "Off"} for name in sorted(WATCHES)}
    return "Health monitor systems report\n" + _styled({"body": body})


def healthy() -> str:
    """`health -c -j` of GPUs that are well: no GPU is named."""
    return _styled(
        {"body": {"Overall Health": {"value": "Healthy"}}, "header": ["Health Monitor Report"]}
    )


def incidents(overall: str, *entries: tuple[str, str, str, str, str]) -> str:
    """`health -c -j` with incidents: group, number, system, verdict, what DCGM says of it."""
    body: dict[str, Any] = {"Overall Health": {"value": overall}}
    for group, number, system, verdict, text in entries:
        entities = body.setdefault(group, {"children": {}})["children"]
        entity = entities.setdefault(number, {"children": {"Errors": {"children": {}}}})
        entity["value"] = verdict
        words = text.split()
        half = len(words) // 2
        entity["children"]["Errors"]["children"][system] = {
            "overflow": [" ".join(words[:half]), " ".join(words[half:])],
            "value": verdict,
        }
    return _styled({"body": body, "header": ["Health Monitor Report"]})


def result(number: int, status: str, *warnings: tuple[int, str], group: str = "GPU") -> Any:
    """A test's result on a GPU. + warnings: severity and text"""
    entry: dict[str, Any] = {
        "entity_group": group, "entity_group_id": 0, "entity_id": number, "status": status,
    }  # fmt: skip
    if warnings:
        entry["warnings"] = [
            {"error_category": 7, "error_id": 40, "error_severity": severity, "warning": text}
            for severity, text in warnings
        ]
    return entry


def diagnosis(*tests: tuple[str, list[Any]], root: str = "DCGM Diagnostic") -> str:
    """`diag -r 1 -j`. + tests: name and results"""
    category = {
        "category": "Deployment",
        "tests": [
            {"name": name, "results": results, "test_summary": {"status": "Pass"}}
            for name, results in tests
        ],
    }
    metadata = {"Driver Version Detected": "595.91.07", "version": "4.6.1"}
    return _styled({root: {"test_categories": [category]}, "metadata": metadata})


def not_run(reason: str) -> str:
    """`diag -r 1 -j` that did not run."""
    return _styled({"DCGM Diagnostic": {"runtime_error": reason, "version": "4.6.1"}})


def _styled(data: Any) -> str:
    """As jsoncpp's toStyledString, near enough: keys sorted, over several lines."""
    return json.dumps(data, indent=3, sort_keys=True, separators=(",", " : ")) + "\n"
