"""The one machine of the lab $GPUBOOT_LAB, as `scripts/lab --docker` made it: GPUs and monitor."""

import os

from lab import settings as _site
from lab.build import software_docker as _made

_name = os.environ.get("GPUBOOT_LAB", "docker")
_settings = _site.settings(_name)
_versions = {
    **_settings["versions"],
    "docker": {"version": _made.DOCKER, "compose": _made.COMPOSE},
}
_data = {"gpuboot": {**_settings, "versions": _versions}}

gpu_hosts = (_site.hosts(_name, "control_plane"), _data)
monitor = (_site.hosts(_name, "control_plane"), _data)
