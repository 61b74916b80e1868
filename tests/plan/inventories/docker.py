"""Two bare Docker hosts that do not exist: one with 2 GPUs, and the one that watches."""

import runpy
from pathlib import Path

_site = runpy.run_path(str(Path(__file__).with_name("site.py")))
_host = _site["_host"]

gpu_hosts = ([_host(21, "gpu1", 2)], _site["_data"])
monitor = ([_host(11, "mon1", 0)], _site["_data"])
