"""This machine, alone: control plane and workloads on one node.

    pyinfra inventories/quickstart.py deploys/site.py

Its GPUs are counted on the PCI bus; set GPUBOOT_GPUS to promise another number, for a machine
whose count you know and want to be held to.
"""

import os
import socket
from pathlib import Path

_DISPLAY_CLASSES = ("0x0300", "0x0302")
_NVIDIA = "0x10de"


def _gpus_on_pci():
    devices = Path("/sys/bus/pci/devices").glob("*")
    return sum(
        (device / "vendor").read_text().strip() == _NVIDIA
        and (device / "class").read_text().startswith(_DISPLAY_CLASSES)
        for device in devices
    )


control_plane = [
    (
        "@local",
        {
            "node_name": socket.gethostname().split(".")[0].lower(),
            "gpus": int(os.environ.get("GPUBOOT_GPUS", _gpus_on_pci())),
            "_sudo": os.geteuid() != 0,  # a minimal system has no sudo, and root needs none
        },
    )
]
workers = []
