"""Take the cluster apart again: `pyinfra INVENTORY deploys/reset.py --data gpuboot_reset=yes`.

Everything that ran in it is lost. Packages, containerd and the NVIDIA driver stay. With `--limit`,
only those hosts are taken apart.
"""

from __future__ import annotations

from pyinfra.api.exceptions import DeployError
from pyinfra.context import host

from deploys.context import begin
from deploys.operations import kubeadm

nodes = begin()[2]
if str(host.data.get("gpuboot_reset")).lower() not in ("yes", "true"):
    raise DeployError(
        "this takes the whole cluster apart, with everything that runs in it\n"
        "    remedy: if that is what you want, add --data gpuboot_reset=yes"
    )
roles = {node.host: node.role for node in nodes}
if roles[host.name] == "worker":
    kubeadm.absent(name="Reset | Take the workers apart")
else:
    kubeadm.absent(name="Reset | Take the control plane apart")
