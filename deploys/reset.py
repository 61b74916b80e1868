"""Resets the cluster: `pyinfra INVENTORY deploys/reset.py --data gpuboot_reset=CLUSTER`.

CLUSTER is `cluster.name`: who names the wrong inventory does not lose the wrong cluster. Everything
that ran in it is lost. Packages, containerd, the NVIDIA driver, volumes of local-path and backups
of etcd stay. With `--limit`, only those hosts are reset.
"""

from pyinfra.api.exceptions import DeployError
from pyinfra.context import host

from deploys.parts.api_endpoint import virtual_address_operations as virtual_address
from deploys.parts.dcgm import operations as dcgm
from deploys.parts.driver import nvswitch_operations as nvswitches
from deploys.parts.etcd import operations as etcd_backup
from deploys.parts.gate import operations as gate
from deploys.parts.kubeadm import operations as kubeadm
from deploys.parts.storage import deleted_volume_operations as volumes
from deploys.run.context import begin, cluster_leader
from gpuboot.cluster.backup import METRICS_FOLDER

settings, _, nodes = begin()
name = settings.cluster.name
if str(host.data.get("gpuboot_reset")) != name:
    raise DeployError(
        f"this resets the cluster {name} ({', '.join(node.name for node in nodes)}; with "
        "--limit only the hosts it names), with everything that runs in it\n"
        f"    remedy: if that is what you want, name it: --data gpuboot_reset={name}"
    )
node_to_reset = next(node for node in nodes if node.host == host.name)
leader = cluster_leader(nodes)
if node_to_reset.role == "worker":
    kubeadm.reset(
        name="Reset | Reset the workers (kubeadm reset)",
        node=node_to_reset.name,
        leader=leader.host,
    )
elif not node_to_reset.leader:
    kubeadm.reset(
        name="Reset | Reset the other control-plane nodes (kubeadm reset)",
        node=node_to_reset.name,
        leader=leader.host,
    )
else:
    kubeadm.reset(
        name="Reset | Reset the leader (kubeadm reset)", node=node_to_reset.name, leader=leader.host
    )
if node_to_reset.role == "control_plane":
    virtual_address.absent(name="Reset | Take the API's virtual address away (keepalived)")
    etcd_backup.scheduled(
        name="Reset | Take no more backups of etcd", program="", contents={}, secrets={}
    )
dcgm.removed(name="Reset | Stop DCGM's host engine", metrics=METRICS_FOLDER)
nvswitches.unwatched(name="Reset | Tell no more of errors of NVSwitches", metrics=METRICS_FOLDER)
gate.installed(name="Reset | Remove the gate's programs", programs={}, contents={})
volumes.reported(name="Reset | List volumes that stay", folder=settings.monitoring.storage.path)
