"""Chooses the GPUs of a machine that are the cluster's; the others are named and left alone.

Not the cluster's are: virtual functions (SR-IOV), functions that are kept for virtual machines
(vfio-pci and its relatives), GPUs that the driver's branch has dropped, which it ignores, and those
that the host's data does not name (`cluster_gpus`). The driver itself leaves the last out by its
parameter NVreg_ExcludedGpus (open-gpu-kernel-modules, nv-reg.h: UUIDs that "cannot be attached or
used"), so that nvidia-smi, CDI, device plugin and exporter know nothing of them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuboot.config.inventory import Node
from gpuboot.config.versions import DriverLock
from gpuboot.hosts import gpu_models, gpu_names
from gpuboot.hosts.driver_packages import branch
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.pci import GPU_CLASSES, NVIDIA, PciDevice

_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
# drivers that keep a function for something else than this host
_RESERVED_DRIVERS = re.compile(r"vfio|pci-stub|pciback|uio_pci_generic")


def choose(node: Node, state: NodeState, driver: DriverLock | None) -> NodeState:
    """The state with every GPU marked that is not the cluster's (`ignored_gpus`).

    + driver: the version to run; None where gpuboot installs none
    """
    ignored = _unfit(state.all_gpus, driver)
    candidates = [gpu for gpu in state.all_gpus if gpu.slot not in ignored]
    if node.cluster_gpus and not unknown_uuids(node, state):
        unselected = unnamed(node.cluster_gpus, candidates)
        ignored |= dict.fromkeys((gpu.slot for gpu in unselected), "not named in cluster_gpus")
    return replace(state, ignored_gpus=ignored)


def _unfit(gpus: Sequence[PciDevice], driver: DriverLock | None) -> dict[str, str]:
    """PCI address -> why a GPU cannot be for pods, whatever the host's data says."""
    unfit = {gpu.slot: reason for gpu in gpus if (reason := _reserved(gpu))}
    candidates = [gpu for gpu in gpus if gpu.slot not in unfit]
    dropped = [gpu for gpu in candidates if driver and _dropped(gpu, driver)]
    if driver and len(dropped) < len(candidates):  # else the driver is the wrong one
        text = f"driver branch {branch(driver.version)} supports no {{}}"
        unfit |= {gpu.slot: text.format(gpu_models.generation(gpu.device).name) for gpu in dropped}
    return unfit


def count_local(driver: DriverLock, devices: Path = Path("/sys/bus/pci/devices")) -> int:
    """How many GPUs of this machine are for pods.

    + driver: the version to run; devices: folder of the PCI bus
    """
    gpus = [
        PciDevice(
            slot=folder.name,
            device=int((folder / "device").read_text(), 16),
            kind=kind,
            driver=(folder / "driver").resolve().name if (folder / "driver").exists() else "",
            virtual=(folder / "physfn").exists(),
        )
        for folder in sorted(devices.glob("*"))
        if (folder / "vendor").read_text().strip() == NVIDIA
        and (kind := (folder / "class").read_text().strip()).startswith(GPU_CLASSES)
    ]
    return len(gpus) - len(_unfit(gpus, driver))


def _reserved(gpu: PciDevice) -> str:
    """Why this host cannot use a GPU; "" where it can."""
    if gpu.virtual:
        return "a virtual function (SR-IOV)"
    return f"kept by the driver {gpu.driver}" if _RESERVED_DRIVERS.search(gpu.driver) else ""


def _dropped(gpu: PciDevice, driver: DriverLock) -> bool:
    """Whether a driver ignores a GPU because its generation is too old."""
    modules = gpu_models.generation(gpu.device).open_modules
    legacy = branch(driver.version) > branch(driver.last_legacy)
    return modules == "unsupported" or (modules == "never" and legacy)


def unnamed(names: Sequence[str], gpus: Iterable[PciDevice]) -> list[PciDevice]:
    """The GPUs that `cluster_gpus` does not name."""
    return [gpu for gpu in gpus if not any(_is_named(name, gpu) for name in names)]


def unmatched(node: Node, state: NodeState) -> list[str]:
    """What `cluster_gpus` names and the machine does not have."""
    if unknown_uuids(node, state):
        return []
    return [
        name for name in node.cluster_gpus if not any(_is_named(name, gpu) for gpu in state.gpus)
    ]


def unknown_uuids(node: Node, state: NodeState) -> bool:
    """Whether UUIDs are named that nobody knows before an NVIDIA driver is loaded."""
    by_uuid = any(name.startswith("GPU-") for name in node.cluster_gpus)
    return by_uuid and not any(gpu.uuid for gpu in state.all_gpus)


def _is_named(name: str, gpu: PciDevice) -> bool:
    text = name.strip().lower()
    if text.startswith("gpu-"):
        return text == gpu.uuid.lower()
    if address := _ADDRESS.fullmatch(text):
        domain, place = gpu.slot.split(":", 1)
        return place == address[2] and int(domain, 16) == int(address[1] or "0", 16)
    if text.startswith("10de:"):
        return text == f"10de:{gpu.device:04x}"
    return text in gpu_names.name(gpu.device).lower()


def describe(gpu: PciDevice) -> str:
    """A GPU for people: address, model, and its UUID where that is known."""
    model = gpu_names.name(gpu.device)
    return f"{gpu.slot} {model} {gpu.uuid}".strip()


def ignored(state: NodeState) -> list[str]:
    """The GPUs that are left alone, each with the reason."""
    return [
        f"{describe(gpu)} ({state.ignored_gpus[gpu.slot]})"
        for gpu in state.all_gpus
        if gpu.slot in state.ignored_gpus
    ]


def warnings(nodes: Iterable[Node], states: Mapping[str, NodeState]) -> list[str]:
    """A line for each host with GPUs that are left alone, or not known yet."""
    lines = []
    for node in nodes:
        if node.host not in states:
            continue
        state = states[node.host]
        if ignored_gpus := ignored(state):
            lines.append(
                f"{node.host}: left alone: {'; '.join(ignored_gpus)}; remedy: none is needed; "
                "cluster_gpus in the host's data names the cluster's GPUs"
            )
        if unknown_uuids(node, state):
            lines.append(
                f"{node.host}: cluster_gpus names UUIDs, which are known once the driver is "
                "loaded: the run compares them then; remedy: none is needed"
            )
    return lines


def options(uuids: Iterable[str]) -> str:
    """The text of the file that has the driver leave these GPUs out; "" for none."""
    names = ",".join(sorted(uuids))
    if not names:
        return ""
    return (
        "# Written by gpuboot: GPUs that cluster_gpus of the inventory does not name\n"
        f"options nvidia NVreg_ExcludedGpus={names}\n"
    )
