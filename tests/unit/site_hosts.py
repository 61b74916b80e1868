"""Hosts that were read, for the tests of `gpuboot init`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuboot.hosts.pci import PciDevice
from gpuboot.hosts.reading import HostReading
from tests.unit.test_preflight import CLEAN

H100, L40S, V100 = 0x2330, 0x26B9, 0x1DB1


def pci(device: int, count: int) -> tuple[PciDevice, ...]:
    return tuple(PciDevice(f"0000:{slot:02x}:00.0", device, "0x030200") for slot in range(count))


def reading(
    number: int, name: str, gpus: int = 0, device: int = H100, peer: str = "", **extra: Any
) -> HostReading:
    """A clean host with one address."""
    address = f"192.0.2.{number}"
    root_login = bool(extra.pop("root_login", False))
    state = replace(
        CLEAN,
        hostname=name,
        machine_id=f"machine-{number}",
        boot_id=f"boot-{number}",
        pci=pci(device, gpus),
        **{
            "default_address": address,
            "addresses": (address,),
            "routes": (("192.0.2.0/24", "eth0"),),
            "memory_mib": 65536,
            "cpus": 32,
            **extra,
        },
    )
    return HostReading(state=state, peer=peer or address, root_login=root_login)
