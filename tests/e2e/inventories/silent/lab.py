"""The lab, with a worker that nobody answers for."""

import runpy

_lab = runpy.run_path("inventories/lab.py")
_leader = _lab["control_plane"][0][0][1]
_address = _leader["address"].rpartition(".")[0] + ".99"
_silent = {**_leader, "ssh_hostname": _address, "address": _address, "gpus": 1}

control_plane = _lab["control_plane"]
workers = ([*_lab["workers"][0], ("gpu9", {**_silent, "ssh_connect_retries": 0})], _lab["_data"])
