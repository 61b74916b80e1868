"""The lab without its last worker."""

import runpy

_lab = runpy.run_path("inventories/lab.py")

control_plane = _lab["control_plane"]
workers = (_lab["workers"][0][:-1], _lab["_data"])
