"""What the fact `deploys/parts/driver/nvidia_fact.sh` says, and a host's evidence made from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuboot.config.inventory import Node
from gpuboot.hosts import fabric, gpu_choice, mig_devices
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.node_state import NodeState
from gpuboot.verify import dcgm_results
from gpuboot.verify.dcgm_results import DcgmAnswer
from gpuboot.verify.devices import Gpu, Host, Sensor

_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BUS = re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")
_ADDRESS = re.compile(r"[0-9a-f]{2}:[0-9a-f]{2}\.\d")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_COLUMNS = 9
# What stands in nvidia-smi's CSV for a value: these of a GPU that works no more, in any column.
_FAULTS = ("[GPU requires reset]", "[GPU is lost]")
# A missing sensor is [N/A]. Temperature or state that cannot be read is a fault; power alone may
# be a board without its sensor.
_UNKNOWN = "[Unknown Error]"


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """What driver, toolkit and containerd say.

    + driver_text: first line of /proc/driver/nvidia/version
    + uuids: PCI address -> UUID, as the kernel module has them ("" where it never learned it)
    + gpus: those that nvidia-smi answers for
    + gpu_errors: PCI address -> what nvidia-smi says of a GPU that does not answer
    + smi_error: what nvidia-smi said instead of an answer
    + cdi_devices: CDI device names; None when nvidia-ctk did not answer
    + runtime_handlers, default_runtime: of the running containerd
    + dcgm: what its host engine said last
    """

    driver_text: str = ""
    uuids: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
    gpu_errors: Mapping[str, str] = field(default_factory=dict)
    smi_error: str = ""
    cdi_devices: tuple[str, ...] | None = None
    runtime_handlers: tuple[str, ...] = ()
    default_runtime: str = ""
    dcgm: tuple[DcgmAnswer, ...] = ()


def parse(lines: Iterable[str]) -> GpuState:
    """The state that the script printed. Raises `FactOutputError`."""
    values = Fields(lines)
    handlers, default = _parse_cri(values.first("cri"))
    proc_rows = [item.partition(" ") for item in values.all("proc")]
    unlisted = [item.partition(" ") for item in values.all("silent")]
    rows = [row for row in map(_parse_row, values.all("smi")) if row is not None]
    warnings = [line for line in values.all("smi") if _parse_row(line) is None]
    gpu_rows = [row for row in rows if _UUID.fullmatch(row[1]) and row[0].isdigit()]
    fabric_errors = _fabric_errors(values.all("fabric"))
    row_errors = {sysfs_address(row[3]): _row_error(row) for row in rows if row not in gpu_rows}
    return GpuState(
        driver_text=values.first("module"),
        uuids={slot: uuid if _UUID.fullmatch(uuid) else "" for slot, _, uuid in proc_rows},
        gpus=tuple(
            replace(
                _with_instances(_gpu(row), row[3], values.all("mig"), values.all("mig_id")),
                fabric_error=fabric_errors.get(row[1], ""),
                warning=_warning(row[3], warnings),
            )
            for row in gpu_rows
        ),
        gpu_errors=row_errors | {slot: text.strip() for slot, _, text in unlisted},
        smi_error=values.first("smi_error"),
        cdi_devices=tuple(values.all("cdi")) if "cdi_read" in values else None,
        runtime_handlers=handlers,
        default_runtime=default,
        dcgm=dcgm_results.parse(values),
    )


def _fabric_errors(rows: Iterable[str]) -> dict[str, str]:
    """UUID -> what keeps a GPU out of its NVLink fabric."""
    words = [[word.strip() for word in row.split(",")] for row in rows]
    return {item[0]: fabric.unready(item[1], item[2]) for item in words if len(item) == 3}


def _parse_row(row: str) -> list[str] | None:
    """A row of nvidia-smi's CSV; None for a line that is none (warnings go to stdout too)."""
    columns = [column.strip() for column in row.split(", ")]
    good = len(columns) == _COLUMNS and _BUS.fullmatch(columns[3])
    return columns if good else None


def _warning(bus: str, lines: Iterable[str]) -> str:
    """What nvidia-smi prints about one GPU beside its row, such as `infoROM is corrupted`.

    A line without a GPU's address is about all of them.
    """
    address = sysfs_address(bus)
    addressed_lines = [(line, _ADDRESS.findall(line.lower())) for line in lines]
    return "; ".join(
        line.strip()
        for line, addresses in addressed_lines
        if not addresses or any(address.endswith(name) for name in addresses)
    )


def _row_error(columns: Sequence[str]) -> str:
    """What a row without index and UUID says in their place."""
    words = dict.fromkeys(text.strip("[]") for text in columns if text.startswith("["))
    return ", ".join(words) or "nvidia-smi shows no UUID"


def _gpu(columns: Sequence[str]) -> Gpu:
    index, uuid, name, bus, memory, mig, temperature, power, state = columns
    fault = next((text for text in _FAULTS if text in columns), "")
    if not fault and _UNKNOWN in (temperature, state):
        fault = _UNKNOWN
    values: dict[Sensor, str] = {"temperature": temperature, "power": power, "memory": memory}
    return Gpu(
        pci=sysfs_address(bus),
        uuid=uuid,
        index=int(index),
        name=name,
        memory_mib=int(memory) if memory.isdigit() else None,
        mig=mig == "Enabled",
        fault=fault.strip("[]"),
        sensors=tuple(sensor for sensor, value in values.items() if _NUMBER.fullmatch(value)),
    )


def _with_instances(gpu: Gpu, bus: str, listing: Sequence[str], details: Sequence[str]) -> Gpu:
    """The GPU with its MIG devices, which it may have although it no longer tells its MIG mode."""
    listed_instances = mig_devices.parse_list(listing)
    if gpu.mig and gpu.uuid not in listed_instances:
        return replace(gpu, fault=gpu.fault or "nvidia-smi -L does not list it and its instances")
    instances = mig_devices.with_ids(
        listed_instances.get(gpu.uuid, ()), bus, mig_devices.parse_ids(details)
    )
    return replace(gpu, mig=gpu.mig or bool(instances), instances=instances)


def sysfs_address(bus_id: str) -> str:
    """nvidia-smi's bus id in sysfs' spelling: 00000000:1C:00.0 gives 0000:1c:00.0."""
    domain, _, suffix = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{suffix}"


def _parse_cri(text: str) -> tuple[tuple[str, ...], str]:
    """Runtime handlers and the default one from `crictl info`; empty when it did not answer."""
    try:
        info = json.loads(text)
    except ValueError:
        return (), ""
    containerd = (info.get("config") or {}).get("containerd") or {}
    handler_names = {str(item.get("name", "")) for item in info.get("runtimeHandlers") or ()}
    handlers = sorted((handler_names | set(containerd.get("runtimes") or ())) - {""})
    return tuple(handlers), str(containerd.get("defaultRuntimeName", ""))


def host(node: Node, state: NodeState, gpus: GpuState, driver_requested: str | None) -> Host:
    """All that one GPU node's operating system says, for the chain.

    + driver_requested: the driver version that the lock asks for; None where gpuboot installs none
    """
    on_bus = tuple(device.slot for device in state.gpus)
    answering = {gpu.pci: gpu for gpu in gpus.gpus}
    silent_gpus = [
        Gpu(pci=address, uuid=gpus.uuids.get(address, ""), is_lost=address in gpus.gpu_errors)
        for address in on_bus
        if address not in answering
    ]
    errors = [text for slot, text in gpus.gpu_errors.items() if slot in on_bus]
    # an answer that lacks only GPUs that are not the cluster's is whole
    failed = gpus.smi_error if silent_gpus or not answering else ""
    error = failed or "; ".join(dict.fromkeys(errors))
    return Host(
        node=node.name,
        expected_gpus=node.gpus,
        gpus=tuple(sorted([*answering.values(), *silent_gpus], key=lambda gpu: gpu.pci)),
        pci_addresses=on_bus,
        left_alone=tuple(gpu_choice.ignored(state)),
        driver_requested=driver_requested,
        driver_installed=state.driver_installed,
        driver_loaded=state.driver_loaded,
        driver_text=gpus.driver_text,
        smi_error=error,
        cdi_devices=gpus.cdi_devices,
        runtime_handlers=gpus.runtime_handlers,
        default_runtime=gpus.default_runtime,
        dcgm=gpus.dcgm,
    )


def unreachable_host(node: Node, error: str) -> Host:
    """A GPU node that could not be read, with the reason."""
    return replace(Host(node=node.name, expected_gpus=node.gpus), error=error)
