"""pyinfra's inventory of the machines in $GPUBOOT_BENCH_INVENTORY, the one that Ansible reads."""

import json
import os
from pathlib import Path

_site = json.loads(Path(os.environ["GPUBOOT_BENCH_INVENTORY"]).read_text())["all"]
_vars = _site["vars"]
_known_hosts = _vars["ansible_ssh_common_args"].partition("UserKnownHostsFile=")[2]
machines = (
    [
        (name, {"ssh_hostname": data["ansible_host"], "gpus": data["gpus"]})
        for name, data in _site["hosts"].items()
    ],
    {
        "ssh_user": _vars["ansible_user"],
        "ssh_key": _vars["ansible_ssh_private_key_file"],
        "ssh_known_hosts_file": _vars["ansible_ssh_common_args"].partition("UserKnownHostsFile=")[
            2
        ],
        "nodes": _vars["nodes"],
        "site": _vars["site"],
    },
)
