"""Alerts on what connects GPUs: NVLink, its fabric, and PCIe."""

from __future__ import annotations

from gpuboot.hosts.nvswitch_errors import METRIC
from gpuboot.monitoring.rules.alert import ON_GPU, Alert
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GPU, age, level, over
from gpuboot.monitoring.rules.recording_xid import REPAIRED
from gpuboot.monitoring.rules.requirements import Requirement
from gpuboot.monitoring.rules.xid_lines import ALWAYS_FATAL

_REPLAY = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
_RECOVERY = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
_CRC = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"
_NVLINK = [
    Alert(
        name="GPUNvlinkErrors",
        severity="warning",
        action="investigate",
        expr=f"max by ({GPU}) {over('increase', _REPLAY, '5m')} > {{threshold}}\n"
        f"or max by ({GPU}) {over('increase', _RECOVERY, '5m')} > {{threshold}}",
        hold_for="5m",
        threshold=2,
        summary=f"NVLink errors on {ON_GPU}",
        description="Links replay or recover; traffic between GPUs is slow or stalls. "
        "{{ $labels.UUID }}",
    ),
    Alert(
        name="GPUNvlinkCrcErrors",
        severity="critical",
        action="reset",
        expr=f"max by ({GPU}) {over('rate', _CRC, '5m')} >= {{threshold}}",
        hold_for="5m",
        threshold=100,
        summary=f"An NVLink of {ON_GPU} corrupts data",
        description='{{ $value | printf "%.0f" }} CRC errors a second; all are caught and sent '
        "again. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPUFabricNotReady",
        severity="critical",
        action="investigate",
        expr=level("DCGM_FI_DEV_FABRIC_MANAGER_STATUS") + " > 0 != 3 != 6",
        hold_for="10m",
        summary=f"{ON_GPU} is not part of its NVLink fabric",
        description="Fabric state {{ $value }}: 1 not started, 2 in progress, 3 would be success. "
        "{{ $labels.UUID }}",
    ),
]

_REBOOTS = "|".join(map(str, sorted(ALWAYS_FATAL)))
_ERRORS = f"max by (node, switch, sxid) ({age(METRIC)})"
_BY_RESET = f'{METRIC}{{sxid!~"{_REBOOTS}"}}'  # those that a reset ends
# Switches are reset together with all GPUs that reach each other through them, never with one.
_ALL_RESET = (
    f"max by (node) (time() - {REPAIRED})"
    f" and on (node) count by (node) ({REPAIRED}) >= on (node) node:gpu_visible:count"
)
_RESET = (
    f"max by (node, switch, sxid) ({age(_BY_RESET)})\n  > on (node) group_left () ({_ALL_RESET})"
)
_SWITCHES = [
    Alert(
        name="NVSwitchFatalError",
        severity="critical",
        action=f'{{{{ if match "^({_REBOOTS})$" $labels.sxid }}}}reboot'
        "{{ else }}reset{{ end }}",
        expr=f"{_ERRORS} < 3600 * {{threshold}}\nunless ({_RESET})",
        threshold=24,
        summary="NVSwitch {{ $labels.switch }} of {{ $labels.node }} has a fatal error, SXid "
        "{{ $labels.sxid }}",
        description="Jobs whose traffic went through it have failed; "
        "{{ $value | humanizeDuration }} ago.",
        requires=Requirement.NVSWITCH_ERRORS,
    ),
]

_SLOT = "node, UUID, pci_bus_id"
_GEN, _LANES = "gpu:pcie_gen:max", "gpu:pcie_lanes:max"
_MOST_GEN = f"max by ({_SLOT}) (DCGM_FI_DEV_PCIE_MAX_LINK_GEN < {BLANK_VALUE})"
_NOW = level("DCGM_FI_DEV_PCIE_LINK_WIDTH", f"{GPU}, pci_bus_id")


def _best(record: str) -> str:
    """What the GPU had in this slot at best: within 14 days, or since it was put there."""
    return f"max by ({_SLOT}) (max_over_time({record}1h[14d:1h]) or {record}1h)"


# Of a GPU without work the link slows down to save power. One that copies works as well: GPUs
# starve behind a slow link.
_TRAFFIC = "1e8"
_UNDER_LOAD = "\n  or ".join(
    (
        f"max by ({GPU}) (gpu:engine_active:avg5m) > 0.1",
        *(
            f"max by ({GPU}) {over('avg_over_time', f'DCGM_FI_PROF_PCIE_{way}_BYTES', '5m')}"
            f" > {_TRAFFIC}"
            for way in ("RX", "TX")
        ),
    )
)

_PCIE = [
    Alert(
        name="GPUPcieReplay",
        severity="warning",
        action="investigate",
        expr=f"max by ({GPU}) {over('increase', 'DCGM_FI_DEV_PCIE_REPLAY_COUNTER', '5m')} / 5\n"
        f"  > on ({GPU}) {{threshold}} * gpu:pcie_replays:allowed",
        hold_for="10m",
        threshold=1,
        summary=f"PCIe replays on {ON_GPU}",
        description='{{ $value | printf "%.0f" }} a minute on {{ $labels.UUID }}: a bad contact, '
        "riser or cable.",
    ),
    Alert(
        name="GPUPcieWidthDegraded",
        severity="warning",
        action="investigate",
        expr=f"max by ({GPU}) (\n  {_NOW}\n  < on ({_SLOT}) group_left {_best(_LANES)}\n)\n"
        f"and on ({GPU}) (\n  max by ({GPU}) ({_GEN}5m >= on ({_SLOT}) group_left {_best(_GEN)})\n"
        f"  or max by ({GPU}) (gpu:engine_active:avg5m) > 0.1\n)",
        hold_for="15m",
        summary=f"{ON_GPU} runs on {{{{ $value }}}} PCIe lanes",
        description="Fewer lanes than it had in this slot before: transfers to the host are "
        "slower. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPUPcieSpeedDegraded",
        severity="warning",
        action="investigate",
        expr=f"max by ({GPU}) (\n"
        f"  {_GEN}5m < on ({_SLOT}) group_left {_best(_GEN)}\n"
        f"  or {_GEN}5m <= on ({_SLOT}) group_left {_MOST_GEN} - {{threshold}}\n"
        f")\nand on ({GPU}) (\n  {_UNDER_LOAD}\n)",
        hold_for="15m",
        threshold=2,
        summary=f"{ON_GPU} works on PCIe generation {{{{ $value }}}}",
        description="The link is slower than GPU and slot allow, and stays so under load. "
        "{{ $labels.UUID }}",
    ),
]

ALERTS = [*_NVLINK, *_SWITCHES, *_PCIE]
