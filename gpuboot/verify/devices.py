"""What a GPU node has, and what of it pods can hold: whole GPUs, or MIG devices of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuboot.hosts.mig_devices import Instance
from gpuboot.verify.checks.one_file import CommandOutput
from gpuboot.verify.dcgm_results import DcgmAnswer

MigStrategy = Literal["none", "single", "mixed"]
Sensor = Literal["temperature", "power", "memory"]
SeriesKey = tuple[
    str, str
]  # UUID of a GPU and GPU_I_ID of a slice ("": the whole GPU), as series have
GPU_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU as the host knows it.

    + pci: address in sysfs' spelling, e.g. `0000:1c:00.0`
    + uuid: "" when neither nvidia-smi nor /proc/driver/nvidia tells it
    + is_lost: the driver sees the device and gets no answer from it
    + mig: MIG mode is on, so pods get its instances
    + instances: its MIG devices
    + fault: what nvidia-smi says in the place of values, e.g. `GPU requires reset`; "" when well
    + sensors: what nvidia-smi has a value of
    + warning: what nvidia-smi prints beside its values, e.g. `infoROM is corrupted`
    + fabric_error: what keeps it out of its NVLink fabric, e.g. `In Progress`; "" when nothing does
    """

    pci: str
    uuid: str = ""
    index: int | None = None
    name: str = ""
    memory_mib: int | None = None
    is_lost: bool = False
    mig: bool = False
    instances: tuple[Instance, ...] = ()
    fault: str = ""
    sensors: tuple[Sensor, ...] = ()
    fabric_error: str = ""
    warning: str = ""


@dataclass(frozen=True)
class Device:
    """What one pod can hold. instance: None for a whole GPU."""

    gpu: Gpu
    instance: Instance | None = None

    @property
    def uuid(self) -> str:
        """The UUID by which a pod sees it, and by which reports name it."""
        return self.instance.uuid if self.instance else self.gpu.uuid

    @property
    def key(self) -> SeriesKey | None:
        """How its series are labelled; None when nvidia-smi did not tell its GPU instance.

        Compute instances of one GPU instance share their series.
        """
        if self.instance is None:
            return self.gpu.uuid, ""
        return None if self.instance.gi is None else (self.gpu.uuid, str(self.instance.gi))

    def resource(self, strategy: MigStrategy) -> str:
        """What a pod asks for to get it, under the device plugin's MIG strategy."""
        if self.instance is None or strategy != "mixed":
            return GPU_RESOURCE
        return self.instance.resource


@dataclass(frozen=True, kw_only=True)
class Host:
    """What a GPU node's operating system says.

    + node: Kubernetes node name
    + expected_gpus: number of GPUs that the inventory promises
    + gpus: every NVIDIA display controller on the PCI bus and every GPU that nvidia-smi lists
    + pci_addresses: addresses on the PCI bus
    + left_alone: GPUs on the bus that are not the cluster's, each with the reason
    + driver_requested, driver_installed, driver_loaded: versions; driver_requested is None where
      gpuboot does not install it
    + driver_text: first line of /proc/driver/nvidia/version
    + smi_error: what nvidia-smi said instead of an answer
    + cdi_devices: their names, e.g. `nvidia.com/gpu=GPU-…`; None where they were not read
    + runtime_handlers: of containerd's config; default_runtime is one of them
    + outputs: what the commands of checks that are one file printed, by their links; None where
      nobody asked for them
    + dcgm: what DCGM's host engine said last, where there is one
    + replicas: how many pods may hold the same of its GPUs or MIG instances, where the settings
      say so of this node; None: they do not
    + layout: MIG profile -> how many instances its GPUs are to have together; None: any
    + shared_now: resource -> how many pods may hold the same of its devices, as its node says;
      wins over `replicas`
    + outside: how it resolves the site's outside name: `resolved`, `unresolved`, or `hosts-file`
      where that name stands in its /etc/hosts; "" where nobody asked or it did not tell
    + error: why the host could not be read at all; all else is then empty
    """

    node: str
    expected_gpus: int
    gpus: tuple[Gpu, ...] = ()
    pci_addresses: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    driver_requested: str | None = None
    driver_installed: str = ""
    driver_loaded: str = ""
    driver_text: str = ""
    smi_error: str = ""
    cdi_devices: tuple[str, ...] | None = None
    runtime_handlers: tuple[str, ...] = ()
    default_runtime: str = ""
    outputs: Mapping[str, CommandOutput] | None = None
    dcgm: tuple[DcgmAnswer, ...] = ()
    replicas: int | None = None
    layout: Mapping[str, int] | None = None
    shared_now: Mapping[str, int] = field(default_factory=dict)
    outside: str = ""
    error: str = ""

    def shared(self, resource: str, slices: int) -> int:
        """How many pods may hold the same of a resource's devices.

        + slices: `settings.gpu_operator.time_slices`, which is about `nvidia.com/gpu` alone
        """
        if resource in self.shared_now:
            return self.shared_now[resource]
        if self.replicas is not None:
            return self.replicas
        return slices if resource == GPU_RESOURCE else 1

    @property
    def working(self) -> tuple[Gpu, ...]:
        """GPUs that nvidia-smi answered for."""
        return tuple(
            gpu for gpu in self.gpus if gpu.uuid and not gpu.is_lost and gpu.index is not None
        )

    @property
    def uuids(self) -> frozenset[str]:
        """UUIDs of the working GPUs."""
        return frozenset(gpu.uuid for gpu in self.working)

    @property
    def devices(self) -> tuple[Device, ...]:
        """What pods can hold: working GPUs without MIG, and the instances of those with it."""
        return tuple(
            device
            for gpu in self.working
            for device in (
                [Device(gpu, item) for item in gpu.instances] if gpu.mig else [Device(gpu)]
            )
        )

    @property
    def unpartitioned(self) -> tuple[Gpu, ...]:
        """Working GPUs on which MIG is on and that no instance was made of: no pod gets them."""
        return tuple(gpu for gpu in self.working if gpu.mig and not gpu.instances)
