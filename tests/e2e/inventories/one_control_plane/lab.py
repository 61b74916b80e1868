"""The lab without its other control planes."""

import runpy

_lab = runpy.run_path("inventories/lab.py")

control_plane = (_lab["control_plane"][0][:1], _lab["_data"])
workers = _lab["workers"]
