"""Why a GPU does not work although its driver is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes.driver_causes import BELOW as DRIVER_BELOW
from gpuboot.diagnose.causes.driver_causes import is_loaded, with_gpus
from gpuboot.diagnose.causes.xid_causes import BELOW as _BELOW
from gpuboot.diagnose.causes.xid_causes import fabric_errors, lines_since_load, recent_xids
from gpuboot.diagnose.facts import Facts, Host
from gpuboot.hosts import fabric, module_loading

# by which the GPU operator gives a node's GPUs to virtual machines (vm-passthrough)
_WORKLOAD = "nvidia.com/gpu.workload.config"
_MANAGER = "nvidia-fabricmanager"
_INIT = re.compile(r"NVRM: GPU (\S+?):? RmInitAdapter failed|NVRM: RmInitAdapter failed")
_NVML = "Failed to initialize NVML: Unknown Error"
_NOT_READY = ("system not yet initialized", "CUDA_ERROR_SYSTEM_NOT_READY", "Error 802")


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
            evidence = (f"{hardware}, and no package nvidia-fabricmanager", *fabric_errors(host))
            version = host.state.driver_loaded if host.state else ""
            # in a virtual machine the host below it may run the fabric manager
            confidence = Confidence.CERTAIN if fabric_errors(host) else Confidence.LIKELY
            values = {"branch": version.partition(".")[0]}
            yield Sighting(node=host.node, evidence=evidence, confidence=confidence, values=values)


def fabric_manager_version(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        loaded = host.state.driver_loaded if host.state else ""
        package = _upstream(_package(host))
        lines = host.log(_MANAGER, "don't match with driver version", "version mismatch")
        if _needs_manager(host) and package and loaded and package != loaded:
            evidence = (
                f"fabric manager {package}, driver {loaded}",
                *fabric_errors(host),
                *lines[-1:],
            )
            # the package is newer than what runs, until that is started anew
            confidence = Confidence.CERTAIN if len(evidence) > 1 else Confidence.LIKELY
            values = {"version": loaded}
            yield Sighting(node=host.node, evidence=evidence, confidence=confidence, values=values)


def fabric_not_ready(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        unit = host.details.units.get(_MANAGER)
        evidence = list(fabric_errors(host))
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
            for line in lines_since_load(host)
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
            xids = [item.text for item in recent_xids(host) if item.code in (79, 119, 120)]
            lines = [*failed[-1:], *xids[-1:]]
            yield Sighting(node=host.node, evidence=(*evidence, *lines), confidence=confidence)


def other_driver(facts: Facts) -> Iterator[Sighting]:
    """GPUs that the inventory promises and that another driver than NVIDIA's has."""
    for host in with_gpus(facts):
        gpus = host.state.gpus if host.state else ()
        foreign_gpus = [gpu for gpu in gpus if gpu.driver not in ("", "nvidia")]
        if not foreign_gpus or len(gpus) - len(foreign_gpus) >= host.gpus:
            continue
        if not is_loaded(host) and {gpu.driver for gpu in foreign_gpus} <= {
            *module_loading.CONFLICTING
        }:
            continue  # nouveau-loaded
        node = facts.cluster.node(host.node)
        workload = node.labels.get(_WORKLOAD, "") if node else ""
        yield Sighting(
            node=host.node,
            evidence=(
                *(f"{gpu.slot} has the driver {gpu.driver}" for gpu in foreign_gpus[:4]),
                f"{len(gpus) - len(foreign_gpus)} of {host.gpus} promised GPUs are left",
                *([f"the node has the label {_WORKLOAD}={workload}"] if workload else []),
            ),
        )


def not_on_bus(facts: Facts) -> Iterator[Sighting]:
    """Hosts with fewer GPUs on the bus than the inventory promises."""
    for host in facts.read:
        if host.state is not None and len(host.state.gpus) < host.gpus:
            count = f"{len(host.state.gpus)} GPUs on the bus, {host.gpus} in the inventory"
            lines = host.kernel("fallen off the bus")
            yield Sighting(node=host.node, evidence=(count, *lines[-1:]))


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
        id="gpu-other-driver",
        meaning="GPUs that the inventory promises are held by another driver than NVIDIA's, as "
        "vfio-pci holds them for virtual machines",
        find=other_driver,
        remedy="where they are for virtual machines, correct `gpus` of the inventory; else take "
        "away what binds them: vfio-pci's ids in modprobe.d or on the kernel's command line, "
        f"driverctl, or the node label {_WORKLOAD}=vm-passthrough; then reboot",
        command="lspci -nnk -d 10de:; grep -rE 'vfio|pci-stub' /etc/modprobe.d "
        "/etc/modules-load.d /etc/driverctl.d /proc/cmdline",
        on="node",
        explains=DRIVER_BELOW,
    ),
    Cause(
        id="gpu-not-on-bus",
        meaning="a host has fewer GPUs on its PCI bus than the inventory promises",
        find=not_on_bus,
        remedy="power the machine off and on, then reseat or replace the card; in a virtual "
        "machine see what the host below passes through; where it was taken out, correct `gpus`",
        command="lspci -nn -d 10de:; sudo dmesg | grep -iE 'pcie|aer|xid' | tail -20",
        on="node",
        explains=DRIVER_BELOW,
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
