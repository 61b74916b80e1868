"""Data of every inventory: how to reach hosts. Settings of a site stand in its own file here,
named like its inventory (`inventories/prod.py` -> `group_data/prod.py`), as `gpuboot = {...}`."""

from deploys.engine.ssh import fast_transport
from gpuboot.hosts.environment import WITHOUT_PROXIES

_sudo = True
_env = WITHOUT_PROXIES  # a site that sets _env itself begins with `WITHOUT_PROXIES |`
ssh_connect_retries = 5
ssh_paramiko_connect_kwargs = {"transport_factory": fast_transport}
