"""The lab, with one GPU more promised on each GPU machine than it has."""

import runpy

_lab = runpy.run_path("inventories/lab.py")
_hosts, _data = _lab["workers"]

control_plane = _lab["control_plane"]
workers = ([(name, {**host, "gpus": host["gpus"] + 1}) for name, host in _hosts], _data)
