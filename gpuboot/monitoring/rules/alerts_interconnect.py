"""Alerts on what connects GPUs: NVLink, its fabric, and PCIe."""

from __future__ import annotations

from gpuboot.hosts.nvswitch_errors import METRIC
from gpuboot.monitoring.rules.alert import (
    DCGM,
    DRAIN,
    KERNEL_LOG,
    ON_GPU,
    OWN_SOURCE,
    REBOOT,
    RESET_STEPS,
    VERIFY,
    Alert,
)
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GPU, age, level, over
from gpuboot.monitoring.rules.recording_xid import REPAIRED
from gpuboot.monitoring.rules.requirements import Requirement
from gpuboot.monitoring.rules.xid_lines import ALWAYS_FATAL

_REPLAY = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
_RECOVERY = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
_CRC = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"
_LINKS = (
    "Links, on the node: `nvidia-smi nvlink -s -i GPU` (state) and `nvidia-smi nvlink -e -i GPU` "
    "(errors)"
)
_NVLINK = [
    Alert(
        name="GPUNvlinkErrors",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f"max by ({GPU}) {over('increase', _REPLAY, '5m')} > {{threshold}}\n"
        f"or max by ({GPU}) {over('increase', _RECOVERY, '5m')} > {{threshold}}",
        hold_for="5m",
        threshold=2,
        unit="replays or recoveries in 5 minutes; DCGM fails a GPU for one a minute",
        summary=f"NVLink errors on {ON_GPU}",
        description="Links replay or recover; traffic between GPUs is slow or stalls. "
        "{{ $labels.UUID }}",
        meaning="An NVLink of this GPU has to send packets again, or to be brought up again, again "
        "and again. (NVLink 5 counts in other fields, which are not collected: there look at XID "
        "144 to 150 and GPUHealthFail.)",
        reason="Collective operations go at the pace of the slowest link. A few in an hour are "
        "normal: links repair them.",
        check=(_LINKS, KERNEL_LOG, "Fabric manager, on the node: `systemctl status "
               "nvidia-fabricmanager`"),
        remedy=(*RESET_STEPS[:-1],
                "Comes back: reseat the GPU or its NVLink bridge, exchange board or baseboard."),
        source=f"{DCGM}: any replay or recovery in 60 s; that it lasts is {OWN_SOURCE}",
    ),
    Alert(
        name="GPUNvlinkCrcErrors",
        severity="critical",
        component="gpu",
        action="reset",
        expr=f"max by ({GPU}) {over('rate', _CRC, '5m')} >= {{threshold}}",
        hold_for="5m",
        threshold=100,
        unit="data CRC errors a second",
        summary=f"An NVLink of {ON_GPU} corrupts data",
        description="{{ $value | printf \"%.0f\" }} CRC errors a second; all are caught and sent "
        "again. {{ $labels.UUID }}",
        meaning="So many packets arrive damaged that the link is of no use.",
        reason="Nothing is computed wrongly, but jobs over this link crawl.",
        check=(_LINKS, KERNEL_LOG),
        remedy=(*RESET_STEPS[:-1],
                "Comes back: reseat the GPU or its NVLink bridge, exchange board or baseboard."),
        source=f"{DCGM}: 100 CRC errors a second",
    ),
    Alert(
        name="GPUFabricNotReady",
        severity="critical",
        component="gpu",
        action="investigate",
        expr=level("DCGM_FI_DEV_FABRIC_MANAGER_STATUS") + " > 0 != 3 != 6",
        hold_for="10m",
        summary=f"{ON_GPU} is not part of its NVLink fabric",
        description="Fabric state {{ $value }}: 1 not started, 2 in progress, 3 would be success. "
        "{{ $labels.UUID }}",
        meaning="On NVSwitch systems the fabric manager must admit a GPU before CUDA starts on it. "
        "The alert never fires for GPUs without a fabric (0), or with a driver too old to report "
        "it (6).",
        reason="CUDA programs fail with \"system not yet initialized\" (error 802).",
        check=("On the node: `systemctl status nvidia-fabricmanager`, "
               "`journalctl -u nvidia-fabricmanager --since -2h`",
               "`nvidia-smi -q -i UUID | grep -A3 Fabric`",
               "Its version must be the driver's, to the patch: `nv-fabricmanager --version`"),
        remedy=(
            "Version differs: run `pyinfra INVENTORY deploys/site.py` again; it installs the "
            "driver's own.",
            "Same version: `systemctl restart nvidia-fabricmanager`, then restart the pods that "
            "failed.",
            DRAIN,
            REBOOT,
            VERIFY,
        ),
        source="DCGM field 170",
    ),
]  # fmt: skip

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
        component="gpu",
        action=f'{{{{ if match "^({_REBOOTS})$" $labels.sxid }}}}reboot'
        "{{ else }}reset{{ end }}",
        expr=f"{_ERRORS} < 3600 * {{threshold}}\nunless ({_RESET})",
        threshold=24,
        unit="hours since the error; it ends earlier when the driver is loaded again, or all GPUs "
        "are reset",
        summary="NVSwitch {{ $labels.switch }} of {{ $labels.node }} has a fatal error, SXid "
        "{{ $labels.sxid }}",
        description="Jobs whose traffic went through it have failed; "
        "{{ $value | humanizeDuration }} ago.",
        meaning="The kernel log of the node has an SXid that the driver calls Fatal. Those that it "
        "calls Non-fatal make no alert: NVIDIA's guide asks for nothing but to watch them.",
        reason="GPUs that reach each other through this switch cannot any more, until it is reset. "
        "New jobs on the node may hang or fail.",
        check=("On the node: `dmesg | grep SXid`; the line has switch, code and link",
               "What the fabric manager made of it: `journalctl -u nvidia-fabricmanager --since "
               "-2h`, /var/log/fabricmanager.log", _LINKS,
               "XIDs of the GPUs on that link: GPUXidFatal, mostly 74"),
        remedy=(
            DRAIN,
            "Label gpu_action `reboot` (12020, 22003, 22011, 23001 to 23017): no reset ends it. "
            + REBOOT,
            "Else all GPUs together, which resets the switches: `systemctl stop "
            "nvidia-fabricmanager`, what else has GPUs open as in GPUXidFatal, `nvidia-smi "
            "--gpu-reset`, `systemctl start nvidia-fabricmanager`. Or reboot.",
            VERIFY,
            "The same switch or link again: have the baseboard tested, with the output of "
            "`nvidia-bug-report.sh`.",
            "The alert ends when the driver was loaded again or, but for those that need a reboot, "
            "all GPUs of the node were reset after the error. A reset that no counter of the GPUs "
            "shows ends it a day after the error.",
        ),
        requires=Requirement.NVSWITCH_ERRORS,
        source="NVIDIA's Fabric Manager User Guide (2025-11-14), NVSwitch errors, tables 21 to 24; "
        f"the day is {OWN_SOURCE}",
    ),
]  # fmt: skip

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
_LINK_OF = (
    "On the node, while it works: `nvidia-smi -q -i UUID | grep -A8 'GPU Link Info'`",
    "`lspci -vv -s BUS_ID | grep -E 'LnkSta|LnkCap'`",
)

_PCIE = [
    Alert(
        name="GPUPcieReplay",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f"max by ({GPU}) {over('increase', 'DCGM_FI_DEV_PCIE_REPLAY_COUNTER', '5m')} / 5\n"
        f"  > on ({GPU}) {{threshold}} * gpu:pcie_replays:allowed",
        hold_for="10m",
        threshold=1,
        unit="times what DCGM allows the link: 8 a minute on gen3 x16, 16 on gen4, 31 on gen5, 62 "
        "on gen6, less with fewer lanes",
        summary=f"PCIe replays on {ON_GPU}",
        description="{{ $value | printf \"%.0f\" }} a minute on {{ $labels.UUID }}: a bad contact, "
        "riser or cable.",
        meaning="Packets on the GPU's PCIe link must be sent again more often than the standard's "
        "bit error rate explains.",
        reason="It costs throughput to the host, and often comes before XID 79.",
        check=("On the node: `nvidia-smi -q -i UUID | grep -i -A2 replay`",
               "Errors the bus reports: `journalctl -k | grep -i -E 'AER|pcieport'`",
               "`lspci -vv -s BUS_ID | grep -E 'LnkSta|LnkCap'`"),
        remedy=("In the next maintenance: reseat the GPU, riser and cables; then another slot.",
                "Follows the GPU into the other slot: have the GPU replaced.", VERIFY),
        source="DCGM's allowance by generation and lanes (DcgmHealthWatch.cpp of 4.6.0)",
    ),
    Alert(
        name="GPUPcieWidthDegraded",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f"max by ({GPU}) (\n  {_NOW}\n  < on ({_SLOT}) group_left {_best(_LANES)}\n)\n"
        f"and on ({GPU}) (\n  max by ({GPU}) ({_GEN}5m >= on ({_SLOT}) group_left {_best(_GEN)})\n"
        f"  or max by ({GPU}) (gpu:engine_active:avg5m) > 0.1\n)",
        hold_for="15m",
        summary=f"{ON_GPU} runs on {{{{ $value }}}} PCIe lanes",
        description="Fewer lanes than it had in this slot before: transfers to the host are "
        "slower. {{ $labels.UUID }}",
        meaning="The link has fewer lanes than it had in the same slot within the last 14 days. "
        "The most that GPU and slot could do is no measure: on AWS g4dn and g5 the GPU reports "
        "x16 and has x8 by design. Links that save power while the GPU is idle (their generation "
        "is lower as well) are left out, and a link that has been narrow since monitoring began "
        "does not fire.",
        reason="Half the lanes are half the speed of loading data, and of GPU traffic through the "
        "host.",
        check=_LINK_OF,
        remedy=("Drain the node, power it off, reseat GPU and riser.", VERIFY,
                "Fewer lanes on purpose (another riser, bifurcation): silence it for 14 days."),
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUPcieSpeedDegraded",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f"max by ({GPU}) (\n"
        f"  {_GEN}5m < on ({_SLOT}) group_left {_best(_GEN)}\n"
        f"  or {_GEN}5m <= on ({_SLOT}) group_left {_MOST_GEN} - {{threshold}}\n"
        f")\nand on ({GPU}) (\n  {_UNDER_LOAD}\n)",
        hold_for="15m",
        threshold=2,
        unit="generations below the most that GPU and slot can do together; each halves the speed",
        summary=f"{ON_GPU} works on PCIe generation {{{{ $value }}}}",
        description="The link is slower than GPU and slot allow, and stays so under load. "
        "{{ $labels.UUID }}",
        meaning="While the GPU works, its link to the host is of a lower PCIe generation than it "
        "had in the same slot within the last 14 days, or of a much lower one (two generations, a "
        "quarter of the speed) than GPU and slot can do together, as the driver says "
        "(`pcie.link.gen.max`). A slot or laptop that can do no more is taken into account there. "
        "Links that save power while the GPU is idle are left out. One generation less since "
        "monitoring began does not fire: risers, and virtual machines whose bus promises more than "
        "the slot has, look like that by design.",
        reason="At generation 1 of 5 loading data takes sixteen times as long. The GPU waits, and "
        "nothing else says why.",
        check=(*_LINK_OF, "Errors the bus reports: `journalctl -k | grep -i -E 'AER|pcieport'`"),
        remedy=("Drain the node and power it off; reseat GPU, riser and cables, then start it: "
                "links are trained at power-on.",
                "Comes back: another slot or riser, and the link speed in the firmware's setup "
                "(Auto). Follows the GPU into the other slot: have the GPU replaced.",
                VERIFY,
                "A riser that can do no more: raise the threshold, or silence it for this node."),
        source="NVML: nvmlDeviceGetMaxPcieLinkGeneration is of device and system together (DCGM "
        f"field 235); the numbers are {OWN_SOURCE}",
    ),
]  # fmt: skip

ALERTS = [*_NVLINK, *_SWITCHES, *_PCIE]
