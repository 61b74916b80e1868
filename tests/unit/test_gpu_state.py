"""What the GPU fact's script prints, and the host's evidence made from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuboot.config.inventory import Node
from gpuboot.hosts.fact_output import FactOutputError
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.pci import PciDevice
from gpuboot.verify.devices import Gpu
from gpuboot.verify.gpu_state import host, parse, sysfs_address, unreachable_host
from tests.unit.evidence import uuid

NODE = Node("gpu1", "gpu1", "10.77.0.21", "worker", 2, False)
CRI = json.dumps(
    {
        "config": {"containerd": {"defaultRuntimeName": "nvidia", "runtimes": {"runc": {}}}},
        "runtimeHandlers": [{"name": ""}, {"name": "runc"}, {"name": "nvidia"}],
    }
)
GOOD = [
    "module\tNVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build",
    f"proc\t0000:10:00.0 {uuid('gpu1', 0)}",
    f"proc\t0000:1c:00.0 {uuid('gpu1', 1)}",
    f"smi\t0, {uuid('gpu1', 0)}, NVIDIA H100 80GB HBM3, 00000000:10:00.0, 81559, Disabled, 34, 71.20, P0",  # noqa: E501
    f"smi\t1, {uuid('gpu1', 1)}, NVIDIA H100 80GB HBM3, 00000000:1C:00.0, 81559, [N/A], 35, 70.81, P0",  # noqa: E501
    "cdi_read\tyes",
    f"cdi\tnvidia.com/gpu={uuid('gpu1', 0)}",
    "cdi\tnvidia.com/gpu=all",
    f"cri\t{CRI}",
    "end\tok",
]
LOST_LINES = [
    *GOOD[:3],
    "smi_error\tUnable to determine the device handle for GPU00000000:1C:00.0: GPU is lost.",
    GOOD[3],
    "silent\t0000:1c:00.0 Unable to determine the device handle for GPU00000000:1C:00.0: lost.",
    "end\tok",
]


def machine(**fields: Any) -> NodeState:
    devices = tuple(
        PciDevice(address, 0x2330, "0x030200") for address in ("0000:10:00.0", "0000:1c:00.0")
    )
    plain: dict[str, Any] = dict.fromkeys(
        ("hostname", "machine_id", "boot_id", "arch", "kernel", "os_id", "os_version"), "x"
    ) | {"os_codename": "", "os_name": "", "headers": "", "default_address": ""}
    plain |= dict.fromkeys(("uid", "cgroup", "memory_mib", "cpus", "clock"), 0)
    plain |= {"pci": devices, "driver_loaded": "595.91.07", "driver_module": "595.91.07"}
    return NodeState(**(plain | fields))


def test_a_sound_machine() -> None:
    parsed = parse(GOOD)
    assert [gpu.index for gpu in parsed.gpus] == [0, 1]
    assert parsed.gpus[0] == Gpu(
        pci="0000:10:00.0",
        uuid=uuid("gpu1", 0),
        index=0,
        name="NVIDIA H100 80GB HBM3",
        memory_mib=81559,
        sensors=("temperature", "power", "memory"),
    )
    assert parsed.default_runtime == "nvidia"
    assert parsed.runtime_handlers == ("nvidia", "runc")
    assert parsed.cdi_devices == (f"nvidia.com/gpu={uuid('gpu1', 0)}", "nvidia.com/gpu=all")
    gpu_host = host(NODE, machine(), parsed, "595.91.07")
    assert gpu_host.uuids == {uuid("gpu1", 0), uuid("gpu1", 1)}
    assert (gpu_host.expected_gpus, gpu_host.driver_installed, gpu_host.driver_loaded) == (
        2,
        "595.91.07",
        "595.91.07",
    )
    assert gpu_host.smi_error == ""


def test_a_lost_gpu_keeps_the_uuid_that_the_kernel_module_knows() -> None:
    gpu_host = host(NODE, machine(), parse(LOST_LINES), None)
    assert [(gpu.pci, gpu.uuid, gpu.is_lost) for gpu in gpu_host.gpus] == [
        ("0000:10:00.0", uuid("gpu1", 0), False),
        ("0000:1c:00.0", uuid("gpu1", 1), True),
    ]
    assert gpu_host.uuids == {uuid("gpu1", 0)}
    assert "00000000:1C:00.0" in gpu_host.smi_error


def test_a_machine_without_driver() -> None:
    gpu_host = host(
        NODE, machine(), parse(["smi_error\tnvidia-smi is not installed", "end\tok"]), None
    )
    assert gpu_host.working == ()
    assert [(gpu.uuid, gpu.is_lost) for gpu in gpu_host.gpus] == [("", False), ("", False)]
    assert gpu_host.smi_error == "nvidia-smi is not installed"
    assert gpu_host.cdi_devices is None


def test_warnings_and_unknown_uuids_are_no_gpus() -> None:
    noise = [
        "smi\tWARNING: infoROM is corrupted at gpu 0000:10:00.0",
        "smi\t[Unknown Error], [GPU is lost], H100, 00000000:10:00.0, 81559, Disabled, 34, 71.20, P0",  # noqa: E501
        "proc\t0000:10:00.0 GPU-????????-????-????-????-????????????",
        "end\tok",
    ]
    assert parse(noise).gpus == ()
    assert parse(noise).gpu_errors == {"0000:10:00.0": "Unknown Error, GPU is lost"}
    assert parse(noise).uuids == {"0000:10:00.0": ""}


def test_mig_mode_is_seen() -> None:
    row = GOOD[3].replace("Disabled", "Enabled")
    assert parse([row, "end\tok"]).gpus[0].mig


def test_containerd_without_an_answer() -> None:
    assert parse(["cri\t", "end\tok"]).runtime_handlers == ()


@pytest.mark.parametrize(
    ("info", "handlers"),
    [
        ({"config": {"containerd": {"runtimes": {"nvidia": {}}}}, "runtimeHandlers": None},
         ("nvidia",)),
        ({"config": {"containerd": {"runtimes": None}}, "runtimeHandlers": [{"name": "nvidia"}]},
         ("nvidia",)),
        ({"config": None, "runtimeHandlers": None}, ()),
    ],
)  # fmt: skip
def test_what_crictl_has_no_value_of_is_null(info: Any, handlers: tuple[str, ...]) -> None:
    """So is what containerd before 2.0 does not tell: the host could not be read for it."""
    assert parse([f"cri\t{json.dumps(info)}", "end\tok"]).runtime_handlers == handlers


def test_an_answer_that_ends_early_is_refused() -> None:
    with pytest.raises(FactOutputError):
        parse(GOOD[:-1])


def test_bus_ids_become_sysfs_addresses() -> None:
    assert sysfs_address("00000000:1C:00.0") == "0000:1c:00.0"
    assert sysfs_address("00000008:01:00.0") == "0008:01:00.0"


def test_an_unread_host_promises_what_it_promised() -> None:
    assert unreachable_host(NODE, "no route").expected_gpus == 2


def test_a_gpu_that_is_not_the_cluster_s_is_named() -> None:
    ignored = {"0000:1c:00.0": "kept by the driver vfio-pci"}
    observed = host(NODE, machine(ignored_gpus=ignored), parse(GOOD), None)
    assert observed.pci_addresses == ("0000:10:00.0",)
    (text,) = observed.left_alone
    assert text.startswith("0000:1c:00.0 ")
    assert text.endswith("(kept by the driver vfio-pci)")
    assert host(NODE, machine(), parse(GOOD), None).left_alone == ()
