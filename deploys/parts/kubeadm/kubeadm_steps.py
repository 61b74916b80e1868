"""How steps of kubeadm begin, and what is reset where one did not end.

A step begins where nothing of a cluster is. Once kubeadm's own preflight has passed, it is marked
by `/etc/gpuboot/kubeadm-<step>.started`; one that was killed leaves that mark, and the next run
resets what is there (`kubeadm reset`) and begins again. What was there before is not ours to reset.
Marks of earlier versions are empty: beside such a one somebody's cluster may stand, which stays.
"""

import shlex

from pyinfra.api.command import FunctionCommand, StringCommand

from deploys.engine.commands import Commands, fail, shell_failure, warn
from deploys.parts.files import operations as files
from gpuboot.cluster.cluster_state import KubeadmState, Step
from gpuboot.cluster.flannel import CNI_CONFIG, CNI_FILE
from gpuboot.cluster.kubeadm import CRI_SOCKET, CRICTL
from gpuboot.hosts.remains import TAKEN_OUT

# etcd's data go where etcd is kubeadm's own: by itself `kubeadm reset` empties /var/lib/etcd of any
# host, of a worker with somebody's etcd as well (kubernetes/kubernetes#133437). A restore that was
# killed has its manifest.
_ETCD_OF_OTHERS = (
    "$([ -e /etc/kubernetes/manifests/etcd.yaml ] || "
    "[ -e /etc/kubernetes/gpuboot-restore/etcd.yaml ] || "
    "echo --skip-phases=remove-etcd-member)"
)
# What a finished reset leaves behind of its own accord is kubeadm's own affair; flannel's
# configuration of CNI is not, and would keep the next cluster's pods on the old network.
# kubeadm stops the kubelet first, which then cannot remove the control groups of its pods
RESET = (
    f"kubeadm reset --force --cri-socket {CRI_SOCKET} {_ETCD_OF_OTHERS} && "
    f"rm -f {CNI_FILE} && "
    "{ ! systemctl is-active -q kubepods.slice || systemctl stop kubepods.slice; }"
)

# What kubeadm reset leaves in the kernel. A node that joins again gets other addresses for its
# pods, and a bridge with those of before refuses each of them.
_NETWORK = r"""
for link in cni0 flannel.1 flannel-v6.1 kube-ipvs0; do
  if ip link show "$link" >/dev/null 2>&1; then ip link delete "$link"; fi
done
if command -v nft >/dev/null; then
  nft list tables | awk '$3 ~ /^(kube-proxy|flannel-ipv[46])$/ { print $2, $3 }' |
    while read -r family table; do nft delete table "$family" "$table"; done
fi
rm -rf /run/flannel
"""
CLEAN_NETWORK = f"sh -ec {shlex.quote(_NETWORK)}"


def unfinished_step(step: Step) -> str:
    """The shell command that fails with what to do about a step of kubeadm that failed."""
    command = shell_failure(
        f"kubeadm {step} failed; its output is above",
        "fix what they name and run again, which resets what it left half made and begins again",
    )
    return command.get_raw_value()


def refused_step(step: Step) -> str:
    """The shell command that fails with what to do where kubeadm's own preflight did."""
    command = shell_failure(
        f"the preflight of kubeadm {step} failed; its output is above, and nothing was changed",
        "fix what it names and run again",
    )
    return command.get_raw_value()


def marker(step: Step) -> str:
    """The file that says that a step began and did not end."""
    return f"/etc/gpuboot/kubeadm-{step}.started"


def begin(step: Step) -> str:
    """The command that marks a step as begun, on a host where all of a cluster is gpuboot's."""
    file = marker(step)
    return (
        f"mkdir -p /etc/gpuboot && echo 'what is here of a cluster is of gpuboot' >{file}.new && "
        f"sync {file}.new && mv {file}.new {file} && sync /etc/gpuboot"
    )


def remains_reset(state: KubeadmState, step: Step) -> Commands:
    """Reset what an earlier cluster of gpuboot left on this host, or a step that did not end."""
    if step in state.started:
        warn(f"an earlier kubeadm {step} did not end: resetting what it left and beginning again")
    elif state.left:
        warn(f"an earlier cluster left {', '.join(state.left)}, and maybe pods: resetting them")
    else:
        return
    yield StringCommand(RESET)
    yield StringCommand(CLEAN_NETWORK)
    if step in state.started:
        yield StringCommand(f"rm {marker(step)}")  # kubeadm may refuse the host before it begins


def cni_first(state: KubeadmState) -> Commands:
    """Write flannel's configuration of CNI before flannel does, on a host that has another one.

    That of podman, for example. The first by name counts; with flannel's missing, the node would be
    Ready at once, and its first pods, CoreDNS's, would stay on podman's network.
    """
    if state.cni_files:
        yield files.write(CNI_FILE, CNI_CONFIG)


def fail_foreign(state: KubeadmState) -> FunctionCommand:
    """The failure of a host with parts of a cluster that gpuboot did not make."""
    parts = state.foreign or [f"/etc/kubernetes/{file}" for file in state.files]
    return fail(
        f"there are parts of a cluster that gpuboot did not make: {'; '.join(parts)}",
        f"see whose they are; {TAKEN_OUT}",
    )


def pods_begin_anew() -> str:
    """The command for a node that the cluster has forgotten: its pods get other addresses.

    Who is cut off in it joins anew: a kubelet that was only started would keep the old bridge.
    """
    join_mark = marker("join")
    # a pod may take longer to end than other answers of containerd
    return (
        f"touch {join_mark} && systemctl stop kubelet && {CRICTL} --timeout 2m rmp --force --all "
        f"&& {CLEAN_NETWORK} && systemctl start kubelet && rm {join_mark}"
    )
