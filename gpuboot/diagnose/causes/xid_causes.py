"""Errors that the driver told of GPUs and NVSwitches by their numbers, and what follows."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts, Host
from gpuboot.diagnose.log_lines import Line
from gpuboot.monitoring.rules import xid
from gpuboot.monitoring.rules.xid_lines import ALWAYS_FATAL, XidLine, parse_sxid, parse_xid

_MANAGER = "nvidia-fabricmanager"
_RECENT_S = 3600
# the driver's first line (nv.c, nvidia_init_module)
_LOADING = "NVRM: loading NVIDIA UNIX"
# `GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)`
_RECOVERY, _NO_ACTION = 154, "to 0x0 (None)"


def fabric_errors(host: Host) -> tuple[str, ...]:
    """What keeps GPUs out of their NVLink fabric, by what they say themselves."""
    gpus = host.gpu.gpus if host.gpu else ()
    return tuple(f"GPU {gpu.index}: {gpu.fabric_error}" for gpu in gpus if gpu.fabric_error)


def lines_since_load(host: Host) -> tuple[Line, ...]:
    """The kernel's lines since the driver was loaded last: what it said before is over."""
    lines = host.details.kernel
    loads = [number for number, line in enumerate(lines) if _LOADING in line]
    return lines[loads[-1] :] if loads else lines


def gpu_xid(facts: Facts) -> Iterator[Sighting]:
    """Errors that the driver told within the last hour and that a GPU does not get over."""
    table = xid.table()
    for host in facts.read:
        evidence = [
            f"{item.text[:160]} ({table[item.code].meaning})"
            for item in recent_xids(host)
            if item.code in table
            and item.severity != "Nonfatal"
            and (table[item.code].kind in xid.FATAL or table[item.code].kind == "inspect")
        ]
        evidence += _recovery_actions(host)
        if evidence:
            yield Sighting(
                node=host.node,
                evidence=tuple(dict.fromkeys(evidence))[-4:],
                confidence=Confidence.LIKELY,
            )


def _recovery_actions(host: Host) -> list[str]:
    """What the driver asks for by its last word about each GPU, where that is something."""
    last_by_address = {
        item.address: item.text for item in recent_xids(host) if item.code == _RECOVERY
    }
    return [text[:160] for text in last_by_address.values() if _NO_ACTION not in text]


def recent_xids(host: Host) -> list[XidLine]:
    """The XIDs of the last hour and of this loading of the driver, the newest last."""
    slots = {device.slot for device in host.state.pci} if host.state else set()
    return [
        item
        for item in map(parse_xid, lines_since_load(host))
        if item
        and item.seconds is not None
        and item.seconds > host.details.uptime_s - _RECENT_S
        # a container sees the kernel log of its whole machine
        and (not slots or any(slot.startswith(item.address) for slot in slots))
    ]


def nvswitch_fatal(facts: Facts) -> Iterator[Sighting]:
    """Errors of NVSwitches within the last hour that a reset of the fabric ends."""
    yield from _nvswitch_errors(facts, always=False)


def nvswitch_always_fatal(facts: Facts) -> Iterator[Sighting]:
    """Errors of NVSwitches within the last hour that need a reboot."""
    yield from _nvswitch_errors(facts, always=True)


def _nvswitch_errors(facts: Facts, *, always: bool) -> Iterator[Sighting]:
    for host in facts.read:
        lines = [
            item.text[:160]
            for item in map(parse_sxid, lines_since_load(host))
            if item
            and item.severity == "Fatal"
            and (item.code in ALWAYS_FATAL) == always
            and item.seconds is not None
            and item.seconds > host.details.uptime_s - _RECENT_S
        ]
        if lines:
            manager_lines = host.log(_MANAGER, "NVSwitch fatal error")
            # both tell what took place; whether it is over, they do not
            yield Sighting(
                node=host.node,
                evidence=(
                    *tuple(dict.fromkeys(lines))[-3:],
                    *fabric_errors(host),
                    *manager_lines[-1:],
                ),
                confidence=Confidence.LIKELY,
            )


BELOW = (
    *("gpu-unhealthy", "gpus-not-found", "device-plugin-missing", "pending-resource"),
    *("pod-crash-loop", "pod-not-ready", "pod-rejected", "cuda-not-ready", "gpus-not-injected"),
)

TABLE = (
    Cause(
        id="gpu-xid",
        meaning="the driver told of an error that a GPU does not get over by itself",
        find=gpu_xid,
        remedy="docs/runbooks has what each XID asks for: mostly a reset or reboot",
        command="sudo dmesg | grep Xid | tail; nvidia-smi -q -d ECC,ROW_REMAPPER",
        on="node",
        explains=BELOW,
    ),
    Cause(
        id="nvswitch-always-fatal",
        meaning="an NVSwitch has an error that no reset ends",
        find=nvswitch_always_fatal,
        remedy="drain the node and reboot it; if it comes back, have the baseboard tested",
        command="sudo dmesg | grep SXid | tail; kubectl drain {node} --ignore-daemonsets "
        "--delete-emptydir-data; ssh {node} sudo reboot",
        explains=("nvswitch-fatal", "fabric-not-ready", "gpu-xid", *BELOW),
    ),
    Cause(
        id="nvswitch-fatal",
        meaning="an NVSwitch has a fatal error: jobs across its links have failed",
        find=nvswitch_fatal,
        remedy="drain the node, stop the fabric manager, reset all GPUs together (which resets the "
        "switches), start it again; or reboot. The same link again: have the baseboard tested",
        command="sudo systemctl stop nvidia-fabricmanager; sudo nvidia-smi --gpu-reset; "
        "sudo systemctl start nvidia-fabricmanager; sudo dmesg | grep SXid | tail",
        on="node",
        explains=("fabric-not-ready", "gpu-xid", *BELOW),
    ),
)
