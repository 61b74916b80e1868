"""Links from the PCI bus to containerd: what the operating system of a GPU node says."""

from __future__ import annotations

from gpuboot.checks.evidence import Gpu, Host
from gpuboot.checks.model import Finding, Scribe


def judge(host: Host, runtime_mode: str) -> list[Finding]:
    """The four lowest links of one node.

    + runtime_mode: `settings.runtime.mode`
    """
    if host.error:
        scribe = Scribe("pci", "host read", host.node)
        remedy = "make the host reachable by SSH with sudo, then verify again"
        return [scribe.unknown(host.error, remedy)]
    return [*pci(host), *driver(host), *smi(host), *runtime(host, runtime_mode)]


def pci(host: Host) -> list[Finding]:
    """The bus shows as many GPUs as the inventory promises."""
    scribe = Scribe("pci", "PCI devices = inventory", host.node)
    seen = len(host.on_bus)
    if seen != host.expected:
        remedy = (
            "look at the machine: a GPU that left the bus needs a power cycle, and then reseating "
            "or replacement; `lspci -d 10de:` and the kernel log tell more"
            if seen < host.expected
            else f"set gpus = {seen} for this host in the inventory"
        )
        return [
            scribe.failed(f"the inventory promises {host.expected} GPUs, PCI shows {seen}", remedy)
        ]
    return [scribe.passed(f"{gpu.pci} on the bus", _uuid(gpu)) for gpu in host.gpus]


def driver(host: Host) -> list[Finding]:
    """The loaded kernel module is the installed driver, and that is the one asked for."""
    scribe = Scribe("driver", "driver loaded = installed = asked", host.node)
    if not host.loaded:
        return [
            scribe.failed(
                f"no NVIDIA kernel module is loaded (installed: {host.installed or 'none'})",
                "`modprobe nvidia` on the node and read the kernel log; with Secure Boot the "
                "module's key must be enrolled",
            )
        ]
    if host.installed != host.loaded:
        return [
            scribe.failed(
                f"loaded {host.loaded}, installed {host.installed or 'none'}",
                "reboot the node (driver.reboot = when-needed does it in the next run)",
            )
        ]
    if host.asked and host.asked != host.loaded:
        return [
            scribe.failed(
                f"loaded {host.loaded}, asked for {host.asked}",
                "run deploys/site.py, which brings the node to the version asked for",
            )
        ]
    asked = f", asked {host.asked}" if host.asked else ""
    detail = f"{host.loaded} loaded, installed{asked}"
    return [scribe.passed(detail, _uuid(gpu)) for gpu in host.gpus]


def smi(host: Host) -> list[Finding]:
    """nvidia-smi answers for every device on the bus, and no two have one UUID."""
    scribe = Scribe("nvidia-smi", "nvidia-smi = PCI devices", host.node)
    if not host.working and not any(gpu.lost for gpu in host.gpus):
        return [
            scribe.failed(
                host.smi_error or "nvidia-smi lists no GPU",
                "run nvidia-smi on the node; if the driver cannot talk to the GPUs, reboot",
            )
        ]
    findings = [_answers(gpu, host, scribe) for gpu in host.gpus]
    twice = sorted(
        {gpu.uuid for gpu in host.working if [g.uuid for g in host.working].count(gpu.uuid) > 1}
    )
    remedy = "two devices with one UUID: the driver's answer cannot be trusted; reboot the node"
    return findings + [scribe.failed(f"UUID {uuid} is there twice", remedy, uuid) for uuid in twice]


def _answers(gpu: Gpu, host: Host, scribe: Scribe) -> Finding:
    if gpu.pci not in host.on_bus:
        remedy = "the PCI bus and the driver disagree: reboot the node"
        return scribe.failed(f"{gpu.pci} is not on the PCI bus", remedy, _uuid(gpu))
    if gpu in host.working:
        memory = f", {gpu.memory_mib} MiB" if gpu.memory_mib else ""
        return scribe.passed(f"{gpu.name}{memory} at {gpu.pci}", gpu.uuid)
    what = "is lost" if gpu.lost else "is not listed"
    said = f": {host.smi_error}" if host.smi_error else ""
    return scribe.failed(
        f"the GPU at {gpu.pci} {what}{said}",
        "drain the node and reboot it (XID 79: fallen off the bus); if it comes back lost, "
        "power-cycle the machine, then replace the GPU",
        _uuid(gpu),
    )


def runtime(host: Host, mode: str) -> list[Finding]:
    """containerd has what the runtime mode needs to hand each working GPU to a container."""
    if not host.working:
        return []
    scribe = Scribe("runtime", "containerd runtime and CDI", host.node)
    rerun = "run deploys/site.py, which writes containerd's configuration anew"
    if mode != "cdi":
        if not host.handlers:
            return [scribe.unknown("containerd did not tell its runtimes", "see `crictl info`")]
        if "nvidia" not in host.handlers:
            return [scribe.failed("containerd has no runtime handler `nvidia`", rerun)]
        if mode == "default" and host.default_runtime != "nvidia":
            got = host.default_runtime or "unknown"
            return [scribe.failed(f"containerd's default runtime is {got}, not nvidia", rerun)]
        detail = f"handler nvidia, default runtime {host.default_runtime or 'unknown'}"
        return [scribe.passed(detail, gpu.uuid) for gpu in host.working]
    if host.cdi is None:
        return [scribe.unknown("nvidia-ctk cdi list gave no answer", "run it on the node")]
    return [_device(host.cdi, scribe, gpu) for gpu in host.working]


def _device(devices: tuple[str, ...], scribe: Scribe, gpu: Gpu) -> Finding:
    """CDI specs name devices by index or by UUID."""
    names = {name.rpartition("=")[2] for name in devices}
    if gpu.uuid in names or str(gpu.index) in names:
        return scribe.passed("CDI device listed", gpu.uuid)
    listed = ", ".join(sorted(names)) or "none"
    return scribe.failed(
        f"no CDI device for this GPU (listed: {listed})",
        "`systemctl restart nvidia-cdi-refresh` or `nvidia-ctk cdi generate "
        "--output=/var/run/cdi/nvidia.yaml` on the node, then restart the device plugin",
        gpu.uuid,
    )


def _uuid(gpu: Gpu) -> str | None:
    return gpu.uuid or None
