"""Restores etcd: `pyinfra INVENTORY deploys/restore.py --data gpuboot_restore=CLUSTER`.

CLUSTER is `cluster.name`. Without --data it says from which backup, and what is undone, and does
nothing. `--data gpuboot_backup=NAME` takes another one than the newest: its name, or its folder on
this machine. A machine that was installed anew is prepared by deploys/host_layers.py before. Ends
with the proof, and names the claims that came back without their data.
"""

from pyinfra.api.exceptions import DeployError
from pyinfra.context import host, inventory, state

from deploys.engine.connections import reach
from deploys.engine.remote import read_fact
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.etcd.fact import EtcdBackups, EtcdNow
from deploys.parts.restore import operations as operations
from deploys.parts.restore import volume_operations as restored_volumes
from deploys.parts.rollout import operations as waits
from deploys.phases.rollout import rollout
from deploys.run import report
from deploys.run.context import begin, cluster_leader, current
from deploys.verify import verify
from gpuboot.cluster import etcd_restore
from gpuboot.cluster.backup import FOLDER
from gpuboot.cluster.kubeadm import SOCKET, configuration
from gpuboot.config.problems import Problem, render

settings, lock, _ = begin()
report.watch(state, settings)
context = current()  # with the hosts' addresses, and the endpoint that the cluster has
settings = context.settings
leader = cluster_leader(context.nodes)
if leader.host != host.name:
    cause = f"the cluster is led by {leader.host} now, and {host.name} is no part of it"
    remedy = f"put {leader.host} first in group control_plane, and run again"
    raise DeployError(render([Problem(host.name, cause, remedy)]))
members = etcd_restore.members(context.nodes)
backups = {
    item.host: read_fact(inventory.get_host(item.host), EtcdBackups, folder=FOLDER)
    for item in members
    if reach(inventory.get_host(item.host))
}
source = etcd_restore.choose(
    str(host.data.get("gpuboot_backup") or ""), backups, FOLDER, leader.host
)
if isinstance(source, Problem):
    raise DeployError(render([source]))
machine = host.get_fact(Kubeadm, socket=SOCKET)
authority = backups[leader.host].ca
prepared = "kubeadm" in machine.packages
problem = etcd_restore.refusal(source, authority, lock.kubernetes.version, prepared, leader.host)
if authority:
    problem = problem or etcd_restore.members_missing(members, backups, authority)
if problem:
    raise DeployError(render([problem]))
volumes = restored_volumes.of_backup(
    state, source, {node.name: node.host for node in context.nodes}
)
if str(host.data.get("gpuboot_restore") or "") != settings.cluster.name:
    live_etcd = host.get_fact(EtcdNow)
    name = settings.cluster.name
    volume_lines = restored_volumes.confirmation_lines(state, volumes)
    raise DeployError(
        etcd_restore.question(name, source, live_etcd, machine.clock, not authority, volume_lines)
    )
config = configuration(settings, lock, context.nodes)
operations.restored(
    name="Restore | Restore etcd and start the control plane",
    source=source,
    members=members[:1] if not authority else members,
    folder=FOLDER,
    volumes=volumes,
    bootstrap=None if authority else operations.LeaderBootstrap(config.digest, config.kubelet),
)
operations.kubelets_restarted(
    name="Restore | Restart the kubelets", hosts=[node.host for node in context.nodes]
)
waits.api_answers(name="Restore | Wait for the API server")
restored_volumes.claims_checked(
    name="Restore | Name the claims that came back without their data", volumes=volumes
)
rollout()
verify(always=True)
