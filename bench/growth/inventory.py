"""pyinfra's inventory of the simulated hosts that $GPUBOOT_BENCH_HOSTS, a JSON file, describes."""

import json
import os
from pathlib import Path

_site = json.loads(Path(os.environ["GPUBOOT_BENCH_HOSTS"]).read_text())
_data = {"gpuboot": _site["settings"]}

control_plane = ([(name, data) for name, data in _site["control_plane"]], _data)
workers = ([(name, data) for name, data in _site["workers"]], _data)
