"""Links from the PCI bus to containerd: what the operating system of a GPU node says."""

from __future__ import annotations

from collections import Counter

from gpuboot.verify.checks.remedies import CLUSTER, Remedies
from gpuboot.verify.devices import Device, Gpu, Host
from gpuboot.verify.findings import Finding, FindingBuilder

UNPARTITIONED = "MIG is on and the GPU has no MIG instance, so no pod can get it"
UNPARTITIONED_REMEDY = (
    "choose a layout (`kubectl label node NODE nvidia.com/mig.config=…` where the GPU Operator's "
    "MIG manager runs, else `nvidia-smi mig -cgi … -C`), or switch MIG off (`nvidia-smi -mig 0`)"
)

FABRIC_REMEDY = (
    "see `systemctl status nvidia-fabricmanager` on the node: its version must be the driver's; "
    "on HGX B200 and later it needs nvlsm and the kernel module ib_umad ({deploy} "
    "installs both); on a GB200 or GB300 rack look at the fabric manager of the switch trays"
)


def evaluate(host: Host, runtime_mode: str) -> list[Finding]:
    """The four lowest links of one node.

    + runtime_mode: `settings.runtime.mode`
    """
    if host.error:
        builder = FindingBuilder("pci", "host read", host.node)
        remedy = "make the host reachable by SSH with sudo, then verify again"
        return [builder.unknown(host.error, remedy)]
    return [*pci(host), *driver(host), *nvidia_smi(host), *runtime(host, runtime_mode)]


def pci(host: Host) -> list[Finding]:
    """Judge whether the bus shows as many GPUs as the inventory promises."""
    builder = FindingBuilder("pci", "PCI devices = inventory", host.node)
    count_on_bus = len(host.pci_addresses)
    if count_on_bus != host.expected_gpus:
        aside = f" (left alone: {'; '.join(host.left_alone)})" if host.left_alone else ""
        detail = f"the inventory promises {host.expected_gpus} GPUs, PCI shows {count_on_bus}"
        return [builder.failed(f"{detail}{aside}", _count_remedy(host, count_on_bus))]
    return [builder.passed(f"{gpu.pci} on the bus", _uuid(gpu)) for gpu in host.gpus]


def _count_remedy(host: Host, count_on_bus: int) -> str:
    correction = f"set gpus = {count_on_bus} for this host in the inventory"
    if count_on_bus > host.expected_gpus:
        return correction
    if count_on_bus + len(host.left_alone) >= host.expected_gpus:
        return (
            "end what keeps a GPU from the cluster (`lspci -nnk -d 10de:` names its driver; "
            f"cluster_gpus in the host's data chooses), and reboot; or {correction}"
        )
    return (
        "look at the machine: a GPU that left the bus needs a power cycle, and then reseating or "
        "replacement; `lspci -d 10de:` and the kernel log tell more"
    )


def driver(host: Host, remedies: Remedies = CLUSTER) -> list[Finding]:
    """Judge whether the loaded module is the installed driver, and that the requested one."""
    builder = FindingBuilder("driver", "driver loaded = installed = asked", host.node)
    if not host.driver_loaded:
        return [
            builder.failed(
                f"no NVIDIA kernel module is loaded (installed: {host.driver_installed or 'none'})",
                "`modprobe nvidia` on the node and read the kernel log; with Secure Boot the "
                "module's key must be enrolled",
            )
        ]
    if host.driver_installed != host.driver_loaded:
        return [
            builder.failed(
                f"loaded {host.driver_loaded}, installed {host.driver_installed or 'none'}",
                "reboot the node (driver.reboot = when-needed does it in the next run)",
            )
        ]
    if host.driver_requested and host.driver_requested != host.driver_loaded:
        return [
            builder.failed(
                f"loaded {host.driver_loaded}, requested {host.driver_requested}",
                f"run {remedies.deploy}, which brings the node to that version",
            )
        ]
    requested = f", requested {host.driver_requested}" if host.driver_requested else ""
    detail = f"{host.driver_loaded} loaded, installed{requested}"
    return [builder.passed(detail, _uuid(gpu)) for gpu in host.gpus]


def nvidia_smi(host: Host, remedies: Remedies = CLUSTER) -> list[Finding]:
    """Judge whether nvidia-smi has values for every device on the bus, and no UUID twice."""
    builder = FindingBuilder("nvidia-smi", "nvidia-smi = PCI devices", host.node)
    if not host.working and not any(gpu.is_lost for gpu in host.gpus):
        return [
            builder.failed(
                host.smi_error or "nvidia-smi lists no GPU",
                "run nvidia-smi on the node; if the driver cannot talk to the GPUs, reboot",
            )
        ]
    findings = [_gpu_finding(gpu, host, builder, remedies) for gpu in host.gpus]
    duplicates = sorted(
        {gpu.uuid for gpu in host.working if [g.uuid for g in host.working].count(gpu.uuid) > 1}
    )
    remedy = "the driver's answer cannot be trusted: reboot the node"
    return findings + [
        builder.failed(f"two devices have UUID {uuid}", remedy, uuid) for uuid in duplicates
    ]


def _gpu_finding(gpu: Gpu, host: Host, builder: FindingBuilder, remedies: Remedies) -> Finding:
    if gpu.pci not in host.pci_addresses:
        remedy = "the PCI bus and the driver disagree: reboot the node"
        return builder.failed(f"{gpu.pci} is not on the PCI bus", remedy, _uuid(gpu))
    if gpu.fault:
        remedy = _fault_remedy(gpu, remedies)
        return builder.failed(f"the GPU at {gpu.pci}: {gpu.fault}", remedy, _uuid(gpu))
    if gpu.fabric_error:
        return builder.failed(
            f"the GPU at {gpu.pci} is not in its NVLink fabric ({gpu.fabric_error}): CUDA answers "
            "802 (system not yet initialized)",
            FABRIC_REMEDY.format(deploy=remedies.deploy),
            gpu.uuid,
        )
    if gpu in host.working:
        memory = f", {gpu.memory_mib} MiB" if gpu.memory_mib else ""
        warning = f"; nvidia-smi: {gpu.warning}" if gpu.warning else ""
        return builder.passed(f"{gpu.name}{memory} at {gpu.pci}{_layout(gpu)}{warning}", gpu.uuid)
    state = "is lost" if gpu.is_lost else "is not listed"
    message = f": {host.smi_error}" if host.smi_error else ""
    return builder.failed(
        f"the GPU at {gpu.pci} {state}{message}",
        f"{remedies.drain} and reboot it (XID 79: fallen off the bus); if it comes back lost, "
        "power-cycle the machine, then replace the GPU",
        _uuid(gpu),
    )


def _fault_remedy(gpu: Gpu, remedies: Remedies) -> str:
    fallback = "if it comes back, power-cycle the machine, then replace the GPU"
    if "reset" in gpu.fault:
        return (
            f"{remedies.drain}, stop what holds the GPU ({remedies.gpu_clients}) and run "
            f"`nvidia-smi --gpu-reset -i {gpu.uuid}`, or reboot the node; {fallback}"
        )
    return (
        f"{remedies.drain} and reboot it; `nvidia-smi -q` and the kernel log (`NVRM: Xid`) tell "
        f"more; {fallback}"
    )


def _layout(gpu: Gpu) -> str:
    """The MIG profiles of a GPU, for people."""
    if not gpu.mig:
        return ""
    profiles = Counter(item.profile for item in gpu.instances)
    parts = ", ".join(f"{count} x {name}" for name, count in profiles.items())
    return f", MIG: {parts or 'no instances'}"


def runtime(host: Host, mode: str) -> list[Finding]:
    """Judge whether containerd can hand GPUs and MIG devices to containers in this runtime mode."""
    if not host.working:
        return []
    builder = FindingBuilder("runtime", "containerd runtime and CDI", host.node)
    unpartitioned = [
        builder.not_covered(UNPARTITIONED, UNPARTITIONED_REMEDY, gpu.uuid)
        for gpu in host.unpartitioned
    ]
    return [*_runtime(host, mode, builder), *unpartitioned]


def _runtime(host: Host, mode: str, builder: FindingBuilder) -> list[Finding]:
    rerun = "run deploys/site.py, which writes containerd's configuration again"
    if mode != "cdi":
        if not host.runtime_handlers:
            return [builder.unknown("containerd did not list its runtimes", "see `crictl info`")]
        if "nvidia" not in host.runtime_handlers:
            return [builder.failed("containerd has no runtime handler `nvidia`", rerun)]
        if mode == "default" and host.default_runtime != "nvidia":
            got = host.default_runtime or "unknown"
            return [builder.failed(f"containerd's default runtime is {got}, not nvidia", rerun)]
        detail = f"handler nvidia, default runtime {host.default_runtime or 'unknown'}"
        return [builder.passed(detail, device.uuid) for device in host.devices]
    if host.cdi_devices is None:
        return [builder.unknown("nvidia-ctk cdi list gave no answer", "run it on the node")]
    return [_cdi_finding(host.cdi_devices, builder, device) for device in host.devices]


def _cdi_finding(
    listed_devices: tuple[str, ...], builder: FindingBuilder, device: Device
) -> Finding:
    names = {name.rpartition("=")[2] for name in listed_devices}
    if names & _cdi_names(device):
        return builder.passed("CDI device listed", device.uuid)
    device_kind = "MIG device" if device.instance else "GPU"
    stale = "; a CDI spec does not follow a change of the MIG layout" if device.instance else ""
    return builder.failed(
        f"no CDI device for this {device_kind} (listed: {', '.join(sorted(names)) or 'none'})",
        "`systemctl restart nvidia-cdi-refresh` or `nvidia-ctk cdi generate "
        f"--output=/var/run/cdi/nvidia.yaml` on the node, then restart the device plugin{stale}",
        device.uuid,
    )


def _cdi_names(device: Device) -> set[str]:
    """What a CDI spec may call it: index, uuid or type-index (nvidia-ctk's naming strategies).

    nvidia-container-toolkit v1.20.0, pkg/nvcdi/namer.go. Of a GPU with MIG only the MIG devices
    are listed (pkg/nvcdi/lib-nvml.go, getDeviceSpecGeneratorsForAllDevices).
    """
    if device.instance is None:
        return {device.uuid, f"{device.gpu.index}", f"gpu{device.gpu.index}"}
    number = f"{device.gpu.index}:{device.instance.index}"
    return {device.uuid, number, f"mig{number}"}


def _uuid(gpu: Gpu) -> str | None:
    return gpu.uuid or None
