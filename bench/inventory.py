"""pyinfra's inventory of the machines in $GPUBOOT_BENCH_SITE."""

import os
from pathlib import Path

from bench.settings import settings as _settings
from bench.site import SITE_VARIABLE
from bench.site import Site as _Site
from lab.settings import Hosts as _Hosts
from lab.settings import hosts as _of_lab

_site = _Site.load(Path(os.environ[SITE_VARIABLE]))
_names = {host.name for host in _site.hosts}
_data = {"gpuboot": _settings(_site)}


def _hosts(role: str) -> _Hosts:
    return [entry for entry in _of_lab(_site.lab, role) if entry[0] in _names]


control_plane = (_hosts("control_plane"), _data)
workers = (_hosts("worker"), _data)
