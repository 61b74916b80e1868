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
own = next(node for node in nodes if node.host == host.name)
leader = next(node for node in nodes if node.leader)
if own.role == "worker":
    kubeadm.absent(name="Reset | Take the workers apart", node=own.name, leader=leader.host)
elif not own.leader:
    kubeadm.absent(
        name="Reset | Take the other control-plane nodes apart", node=own.name, leader=leader.host
    )
else:
    kubeadm.absent(name="Reset | Take the leader apart", node=own.name, leader=leader.host)
