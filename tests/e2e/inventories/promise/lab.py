"""The lab, with one GPU more promised on each GPU machine than it has."""

import runpy

_lab = runpy.run_path("inventories/lab.py")
control_plane = _lab["control_plane"]
workers = [(name, {**data, "gpus": data["gpus"] + 1}) for name, data in _lab["workers"]]
