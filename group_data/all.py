"""Data of every inventory: how to reach hosts. Settings of a site stand in its own file here,
named like its inventory (`inventories/prod.py` -> `group_data/prod.py`), as `gpuboot = {...}`."""

from deploys.lib.ssh import fast_transport

_sudo = True
ssh_connect_retries = 5
ssh_paramiko_connect_kwargs = {"transport_factory": fast_transport}
