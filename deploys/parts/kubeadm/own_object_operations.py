"""Objects that kubeadm has made in the cluster, kept as it makes them. On the leader."""

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing, inform, warn
from deploys.engine.operation import operation
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.cluster.objects_fact import FromKubeadm
from deploys.parts.cluster.release_drift import confirm, describe, put_back, record_drift
from deploys.parts.kubeadm.operations import CONFIG
from gpuboot.cluster.kubeadm_objects import KUBELET, decisions, kubeadm_drift
from gpuboot.cluster.managed_objects import key

MANAGER = "kubeadm"  # in whose name it makes objects
_PROXY = ("ConfigMap", "kube-system", "kube-proxy")


@operation()
def as_made(config: str = CONFIG) -> Commands:
    """Ensure that kubeadm's addons, RBAC and kubelets' configuration are as kubeadm makes them.

    What somebody has deleted or changed is put back; a Corefile that is there stays as it is.

    + config: path of kubeadm's configuration on the host
    """
    state = read(FromKubeadm, kubeconfig=ADMIN_CONF, config=config)
    if state.error:
        if executing():
            warn(f"kubeadm's objects are not compared: {state.error}")
        host.noop("what kubeadm would make is not known")
        return
    changes.respect(*decisions(state))
    drifts = kubeadm_drift(state)
    kubelet = [item for item in drifts if key(item.desired) == KUBELET]
    other_drifts = confirm([item for item in drifts if item not in kubelet], MANAGER)
    if not kubelet and not other_drifts:
        host.noop("the objects are as kubeadm makes them")
        return
    record_drift([*kubelet, *other_drifts], "")
    inform(f"putting back what is not as kubeadm makes it: {describe([*kubelet, *other_drifts])}")
    if kubelet:
        yield StringCommand(
            "kubeadm init phase upload-config kubelet --config", QuoteString(config)
        )
    if other_drifts:
        yield from put_back(other_drifts, MANAGER)
    if any(key(item.desired) == _PROXY for item in other_drifts):
        yield StringCommand(f"{KUBECTL} -n kube-system rollout restart daemonset kube-proxy")
