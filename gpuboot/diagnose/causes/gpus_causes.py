"""Why a GPU does not work although its driver is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes.driver_causes import with_gpus
from gpuboot.diagnose.facts import Facts, Host
from gpuboot.diagnose.log_lines import Line
from gpuboot.hosts import fabric
from gpuboot.monitoring.rules import xid
from gpuboot.monitoring.rules.xid_lines import ALWAYS_FATAL, XidLine, parse_sxid, parse_xid

_MANAGER = "nvidia-fabricmanager"
_INIT = re.compile(r"NVRM: GPU (\S+?):? RmInitAdapter failed|NVRM: RmInitAdapter failed")
_RECENT_S = 3600
_NVML = "Failed to initialize NVML: Unknown Error"
_NOT_READY = ("system not yet initialized", "CUDA_ERROR_SYSTEM_NOT_READY", "Error 802")
# the driver's first line (nv.c, nvidia_init_module)
_LOADING = "NVRM: loading NVIDIA UNIX"


def _needs_manager(host: Host) -> bool:
    return host.state is not None and bool(fabric.detected(host.state))


def _package(host: Host) -> str:
    packages = host.state.packages if host.state else {}
    versions = [version for name, version in packages.items() if name.startswith(_MANAGER)]
    return versions[0] if versions else ""


def _upstream(version: str) -> str:
    return version.partition(":")[2].partition("-")[0] or version.partition("-")[0]


def fabric_manager_missing(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        if _needs_manager(host) and not _package(host) and _MANAGER not in host.details.units:
            count = len(host.state.nvswitches) if host.state else 0
            hardware = (
                f"{count} NVSwitches on the bus" if count else "NVLink 5 switches behind bridges"
            )
            evidence = (f"{hardware}, and no package nvidia-fabricmanager", *_fabric(host))
            version = host.state.driver_loaded if host.state else ""
            # in a virtual machine the host below it may run the fabric manager
            confidence = Confidence.CERTAIN if _fabric(host) else Confidence.LIKELY
            values = {"branch": version.partition(".")[0]}
            yield Sighting(node=host.node, evidence=evidence, confidence=confidence, values=values)


def fabric_manager_version(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        loaded = host.state.driver_loaded if host.state else ""
        package = _upstream(_package(host))
        lines = host.log(_MANAGER, "don't match with driver version", "version mismatch")
        if _needs_manager(host) and package and loaded and package != loaded:
            evidence = (f"fabric manager {package}, driver {loaded}", *_fabric(host), *lines[-1:])
            # the package is newer than what runs, until that is started anew
            confidence = Confidence.CERTAIN if len(evidence) > 1 else Confidence.LIKELY
            values = {"version": loaded}
            yield Sighting(node=host.node, evidence=evidence, confidence=confidence, values=values)


def fabric_not_ready(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        unit = host.details.units.get(_MANAGER)
        evidence = list(_fabric(host))
        is_stopped = _needs_manager(host) and unit is not None and unit.active != "active"
        if is_stopped and unit:
            evidence.insert(0, f"{_MANAGER}.service is {unit.active}, result {unit.result}")
        if not evidence or not (_package(host) or unit):
            continue
        lines = host.log(_MANAGER)
        pod_lines = [
            line
            for pod in facts.cluster.pods
            if pod.node == host.node and pod.devices
            for line in facts.cluster.log(pod, *_NOT_READY)
        ]
        # a manager that runs may have just been started
        confidence = Confidence.CERTAIN if is_stopped or lines or pod_lines else Confidence.LIKELY
        yield Sighting(
            node=host.node,
            evidence=(*evidence, *lines[-1:], *pod_lines[-1:]),
            confidence=confidence,
        )


def _fabric(host: Host) -> tuple[str, ...]:
    """What keeps GPUs out of their NVLink fabric, by what they say themselves."""
    gpus = host.gpu.gpus if host.gpu else ()
    return tuple(f"GPU {gpu.index}: {gpu.fabric_error}" for gpu in gpus if gpu.fabric_error)


def gpu_failed(facts: Facts) -> Iterator[Sighting]:
    """GPUs that the driver could not start, or that are lost."""
    for host in with_gpus(facts):
        if host.gpu is None or not (host.state and host.state.driver_loaded):
            continue
        evidence = [f"{slot}: {text}" for slot, text in host.gpu.gpu_errors.items()]
        evidence += [
            f"GPU {gpu.index} ({gpu.pci}): {gpu.fault}" for gpu in host.gpu.gpus if gpu.fault
        ]
        listed_addresses = {gpu.pci.lower() for gpu in host.gpu.gpus}
        failed = [
            line
            for line in _since_load(host)
            if (match := _INIT.search(line)) and (match[1] or "").lower() not in listed_addresses
        ]
        confidence = Confidence.CERTAIN if evidence else Confidence.LIKELY
        if not evidence and failed and len(host.state.gpus) > len(listed_addresses):
            evidence = [f"nvidia-smi lists {len(host.gpu.gpus)} of {len(host.state.gpus)} GPUs"]
            failed_addresses = {match[1] for line in failed if (match := _INIT.search(line))}
            if failed_addresses & {device.slot.lower() for device in host.state.gpus}:
                confidence = Confidence.CERTAIN
        if (error := host.gpu.smi_error) and "mismatch" not in error and "installed" not in error:
            evidence.append(f"nvidia-smi: {error}")
        if evidence:
            xids = [item.text for item in _xids(host) if item.code in (79, 119, 120)]
            lines = [*failed[-1:], *xids[-1:]]
            yield Sighting(node=host.node, evidence=(*evidence, *lines), confidence=confidence)


def _since_load(host: Host) -> tuple[Line, ...]:
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
            for item in _xids(host)
            if item.code in table
            and item.severity != "Nonfatal"
            and (table[item.code].kind in xid.FATAL or table[item.code].kind == "inspect")
        ]
        if evidence:
            yield Sighting(
                node=host.node,
                evidence=tuple(dict.fromkeys(evidence))[-4:],
                confidence=Confidence.LIKELY,
            )


def _xids(host: Host) -> list[XidLine]:
    """The XIDs of the last hour and of this loading of the driver, the newest last."""
    slots = {device.slot for device in host.state.pci} if host.state else set()
    return [
        item
        for item in map(parse_xid, _since_load(host))
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
            for item in map(parse_sxid, _since_load(host))
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
                evidence=(*tuple(dict.fromkeys(lines))[-3:], *_fabric(host), *manager_lines[-1:]),
                confidence=Confidence.LIKELY,
            )


def gpus_lost_in_containers(facts: Facts) -> Iterator[Sighting]:
    hosts = {host.node: host for host in facts.read}
    for pod in facts.cluster.pods:
        # until it is started anew a container stays without them, however long ago it said so
        lines = facts.cluster.log_since_start(pod, _NVML)
        host = hosts.get(pod.node)
        if pod.going or not lines or host is None or host.gpu is None or host.gpu.smi_error:
            continue
        evidence = [f"in the pod: {lines[-1]}", "nvidia-smi works on the node itself"]
        confidence = Confidence.LIKELY
        no_links = host.details.char_links == 0
        systemd = host.details.runtime_cgroups.get("runc", False)
        if no_links and systemd and any(facts.cluster.present(line.at) for line in lines):
            evidence.append(
                "systemd keeps the cgroups, and /dev/char has no link to an NVIDIA device"
            )
            confidence = Confidence.CERTAIN
        yield Sighting(node=pod.node, pod=pod.key, evidence=tuple(evidence), confidence=confidence)


_BELOW = (
    *("gpu-unhealthy", "gpus-not-found", "device-plugin-missing", "pending-resource"),
    *("pod-crash-loop", "pod-not-ready", "pod-rejected"),
)

TABLE = (
    Cause(
        id="fabric-manager-missing",
        meaning="NVSwitches without a fabric manager: CUDA gives 802, system not yet initialized",
        find=fabric_manager_missing,
        remedy="install the fabric manager of the driver's very version; deploys/site.py does",
        command="sudo apt-get install -y nvidia-fabricmanager-{branch} && "
        "sudo systemctl enable --now nvidia-fabricmanager",
        on="node",
        explains=("fabric-not-ready", *_BELOW),
    ),
    Cause(
        id="fabric-manager-version",
        meaning="fabric manager and driver are of different versions",
        find=fabric_manager_version,
        remedy="install the fabric manager of the driver's very version, and start it again",
        command="apt-cache madison nvidia-fabricmanager | grep {version}; "
        "sudo systemctl restart nvidia-fabricmanager",
        on="node",
        explains=("fabric-not-ready", *_BELOW),
    ),
    Cause(
        id="fabric-not-ready",
        meaning="GPUs are not part of their NVLink fabric, so CUDA gives 802 on them",
        find=fabric_not_ready,
        remedy="start the fabric manager and read what it says; then reset the GPUs or reboot",
        command="sudo systemctl restart nvidia-fabricmanager; "
        "nvidia-smi -q | grep -A3 -i fabric; sudo journalctl -u nvidia-fabricmanager -n 30",
        on="node",
        explains=_BELOW,
    ),
    Cause(
        id="gpu-failed",
        meaning="a GPU does not answer its driver: lost, or it could not be started",
        find=gpu_failed,
        remedy="reboot the node; if it comes back, reseat or replace the GPU",
        command="nvidia-smi; sudo dmesg | grep -E 'NVRM|Xid' | tail -20; sudo reboot",
        on="node",
        explains=("gpu-xid", *_BELOW),
    ),
    Cause(
        id="gpu-xid",
        meaning="the driver told of an error that a GPU does not get over by itself",
        find=gpu_xid,
        remedy="docs/runbooks has what each XID asks for: mostly a reset or reboot",
        command="sudo dmesg | grep Xid | tail; nvidia-smi -q -d ECC,ROW_REMAPPER",
        on="node",
        explains=_BELOW,
    ),
    Cause(
        id="nvswitch-always-fatal",
        meaning="an NVSwitch has an error that no reset ends",
        find=nvswitch_always_fatal,
        remedy="drain the node and reboot it; if it comes back, have the baseboard tested",
        command="sudo dmesg | grep SXid | tail; kubectl drain {node} --ignore-daemonsets "
        "--delete-emptydir-data; ssh {node} sudo reboot",
        explains=("nvswitch-fatal", "fabric-not-ready", "gpu-xid", *_BELOW),
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
        explains=("fabric-not-ready", "gpu-xid", *_BELOW),
    ),
    Cause(
        id="gpus-lost-in-containers",
        meaning="containers lost their GPUs, as systemctl daemon-reload does to them without CDI",
        find=gpus_lost_in_containers,
        remedy="start the pod anew; make the links in /dev/char, or have GPUs injected by CDI",
        command="kubectl -n {namespace} delete pod {name}; "
        "ssh {node} sudo nvidia-ctk system create-dev-char-symlinks --create-all",
    ),
)
