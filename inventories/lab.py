"""The lab's machines, read from the state that `scripts/lab` wrote for the lab $GPUBOOT_LAB."""

import json
import os
from pathlib import Path

_name = os.environ.get("GPUBOOT_LAB", "lab")
_home = Path(os.environ.get("GPUBOOT_STATE", "/var/lib/gpuboot")) / "labs" / _name
_lab = json.loads((_home / "lab.json").read_text())


def _host(machine):
    data = {
        "ssh_hostname": machine["address"],
        "ssh_user": "root",
        "ssh_key": _lab["ssh_key"],
        "ssh_known_hosts_file": str(_home / "ssh" / "known_hosts"),
        "address": machine["address"],
        "gpus": machine["gpus"],
    }
    return machine["name"], data


control_plane = [_host(m) for m in _lab["machines"] if m["role"] == "control_plane"]
workers = [_host(m) for m in _lab["machines"] if m["role"] == "worker"]
