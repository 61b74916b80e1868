"""The lab's one machine, of whose two GPUs the second one is the cluster's."""

import os
from typing import Any

from lab import settings as _site

_name = os.environ["GPUBOOT_LAB"]
_gpu_selection = {"gpus": 1, "cluster_gpus": ["0000:1c:00.0"]}

control_plane = (
    [(host, {**data, **_gpu_selection}) for host, data in _site.hosts(_name, "control_plane")],
    {"gpuboot": _site.settings(_name)},
)
workers: list[Any] = []
