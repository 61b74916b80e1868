"""This machine, alone: control plane and workloads on one node.

    pyinfra inventories/quickstart.py deploys/site.py

Its GPUs are counted on the PCI bus, without those that are not for pods (docs/servers.md); set
GPUBOOT_GPUS to promise another number, for a machine whose count you know and want to be held to.
"""

import os
import socket

from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.gpu_choice import count_local

_driver = versions.lock(parse_settings({})).driver
control_plane = [
    (
        "@local",
        {
            "node_name": socket.gethostname().split(".")[0].lower(),
            "gpus": int(os.environ.get("GPUBOOT_GPUS") or count_local(_driver)),
            "_sudo": os.geteuid() != 0,  # a minimal system has no sudo, and root needs none
        },
    )
]
workers = []
