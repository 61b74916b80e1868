"""The control plane's static pods, kept as kubeadm makes them."""

import shlex

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, executing, fail
from deploys.engine.operation import operation
from deploys.engine.waiting import unfinished, wait_until
from deploys.parts.cluster.fact import Cluster, Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.etcd import operations as etcd_backup
from deploys.parts.kubeadm.static_pods_fact import StaticPods
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.static_pods import FOLDER, changed, is_running, overrides
from gpuboot.plan import Change, Effect
from gpuboot.plan.differences import text_change

_STARTED_S = 180
_REMEDY = "see `crictl ps -a` and `journalctl -u kubelet` on the node, then run again"


@operation()
def as_made(node: str, leader: str, digest: str, version: str, config: str) -> Commands:
    """Ensure that the manifests here are as kubeadm writes them; call it with `_serial=True`.

    While an upgrade or other settings are due, the manifests are theirs. Where this host's API
    server is not there to tell, manifests that are gone are made again by what the host itself has
    in force.

    + node: its Kubernetes name; leader: inventory name of the leader
    + digest: of the configuration that the cluster is to have; version: of Kubernetes
    + config: kubeadm's configuration of this host
    """
    foresee([(host, Kubeadm, {"socket": SOCKET}), (host, StaticPods, {"config": config})])
    state = read(Kubeadm, socket=SOCKET)
    if "kubelet.conf" not in state.files or state.started:
        host.noop("there is no control plane yet")
        return
    target = host.state.inventory.get_host(leader)
    cluster = remote.read_fact(target, Cluster, kubeconfig=ADMIN_CONF)
    confirmed = (cluster.config, cluster.api_servers.get(node)) == (digest, version)
    if not confirmed and (node in cluster.api_servers or not _has(state, digest, version)):
        host.noop("the manifests are those of another configuration")
        return
    static_pods = read(StaticPods, config=config)
    changes.respect(*overrides(static_pods))
    texts = {} if static_pods.error else changed(static_pods)
    if not confirmed:
        texts = {name: text for name, text in texts.items() if name not in static_pods.actual}
    if not texts:
        host.noop(static_pods.error or "the manifests are as kubeadm writes them")
        return
    for name, text in texts.items():
        changes.record(*_change(name, static_pods.actual.get(name), text))
    if "etcd.yaml" in texts and host.name == leader and confirmed:
        yield etcd_backup.before("reconfigure")
    for name, text in texts.items():
        # beside the folder first: the kubelet reads a file there as soon as it has begun
        path, new = f"{FOLDER}/{name}", f"/etc/kubernetes/.gpuboot-{name}"
        yield StringCommand(f"umask 077; printf %s {shlex.quote(text)} > {new} && mv {new} {path}")
    yield from _started(config)


def _has(state: KubeadmState, digest: str, version: str) -> bool:
    """Whether this host's own kubelet is of this configuration and version."""
    installed = state.packages.get("kubelet", "").partition("-")[0]
    return (state.kubelet_config, installed) == (digest, version)


def _change(name: str, old: str | None, new: str) -> list[Change | Effect]:
    part = name.removesuffix(".yaml")
    return [
        text_change(f"file {FOLDER}/{name}", old, new),
        Effect(kind="restart", target=f"static pod {part}", local=True, note="pods run on"),
    ]


def _started(config: str) -> Commands:
    if not executing():
        return

    def probe() -> Progress:
        state = remote.read_fact(host, StaticPods, config=config)
        is_done = not state.error and is_running(state)
        return Progress(is_done, state.error or "the kubelet starts what was changed")

    end = wait_until(host, probe, _STARTED_S)
    if not end.complete:
        yield fail(*unfinished(end, _STARTED_S, _REMEDY))
