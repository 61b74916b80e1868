"""The machines of the lab $GPUBOOT_LAB, as `scripts/lab` made them."""

import os

from lab import settings as _site

_name = os.environ.get("GPUBOOT_LAB", "lab")
_data = {"gpuboot": _site.settings(_name)}

control_plane = (_site.hosts(_name, "control_plane"), _data)
workers = (_site.hosts(_name, "worker"), _data)
