"""Making a cluster with kubeadm, joining it, and bringing it to a newer patch release.

A step that was killed half-way leaves `/etc/gpuboot/kubeadm-<step>.started`; the next run resets
what it left (`kubeadm reset`) and begins again; an upgrade is simply repeated. Anything else that
is found is not ours to reset.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Sequence

from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.operation import operation
from pyinfra.context import host

from deploys.facts.kubeadm import Cluster, Kubeadm
from deploys.lib import changes, remote
from deploys.lib.commands import Commands, executing, fail, shell_failure, warn
from deploys.lib.download_retries import with_retries
from deploys.lib.join_credentials import bootstrap_token, uploaded_certificates
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL
from deploys.operations import packages as package_operations
from gpuboot.config.inventory import Node
from gpuboot.hosts.platforms import PackageManager
from gpuboot.kubernetes.cluster_state import KubeadmState, Step, belongs_elsewhere, stage
from gpuboot.kubernetes.kubeadm import CRI_SOCKET
from gpuboot.kubernetes.manifests import DIGEST
from gpuboot.plan import Change, Effect

SOCKET = CRI_SOCKET.removeprefix("unix://")
CONFIG = "/etc/gpuboot/kubeadm.yaml"
_CRICTL = f"crictl --runtime-endpoint {CRI_SOCKET}"
_KUBELET_NOTE = "/etc/gpuboot/kubelet-config.sha256"
# What a finished reset leaves behind of its own accord is kubeadm's own affair; CNI's
# configuration is not, and would keep the next cluster's pods on the old network.
RESET = f"kubeadm reset --force --cri-socket {CRI_SOCKET} && rm -rf /etc/cni/net.d/*"

# What kubeadm reset leaves in the kernel and on disk.
_CLEAN = r"""
for link in cni0 flannel.1 flannel-v6.1; do
  if ip link show "$link" >/dev/null 2>&1; then ip link delete "$link"; fi
done
if command -v nft >/dev/null; then
  nft list tables | awk '$3 ~ /^(kube-proxy|flannel-ipv[46])$/ { print $2, $3 }' |
    while read -r family table; do nft delete table "$family" "$table"; done
fi
rm -rf /run/flannel /etc/gpuboot/kube* /etc/gpuboot/cordoned /etc/gpuboot/helm
"""


def _failed(step: str) -> str:
    command = shell_failure(
        f"kubeadm {step} did not end; its own words stand above",
        "fix what they name and run again, which resets what it left half made and begins again",
    )
    return command.get_raw_value()


def marker(step: Step) -> str:
    """The file that says that a step began and did not end."""
    return f"/etc/gpuboot/kubeadm-{step}.started"


@operation()
def images_pulled(images: Sequence[str], config: str = "") -> Commands:
    """Ensure that a host that is not part of the cluster yet has the images it starts with.

    + images: what a joining host needs; pulled in the background, while the leader is at work
    + config: on the leader: kubeadm's configuration, whose images are pulled before going on
    """
    state = host.get_fact(Kubeadm, socket=SOCKET)
    step: Step = "init" if config else "join"
    missing = [image for image in images if image not in state.images]
    if stage(state, step) == "done" or not (missing or config):
        host.noop("this host has the images it starts with")
        return
    images = "the control plane's images" if config else f"{len(missing)} images"
    changes.record(Change(subject="containerd's images", new=images))
    if config:
        # Not `kubeadm config images pull`: it asks the registry even for images that are there.
        fetch = f"{_CRICTL} inspecti -q {{}} >/dev/null 2>&1 || {_CRICTL} pull {{}}"
        command = StringCommand(
            "kubeadm config images list --config", QuoteString(config),
            "| xargs -P 4 -I {} sh -c", QuoteString(fetch),
        )  # fmt: skip
        yield with_retries(command, "the control plane's images")
        return
    pull = "; ".join(f"{_CRICTL} pull {image}" for image in missing)
    # A pull that still runs from an earlier try is as good as a new one.
    yield StringCommand(
        "systemctl is-active --quiet gpuboot-pull || systemd-run --quiet --collect --no-block"
        " --unit=gpuboot-pull sh -c",
        QuoteString(pull),
    )


@operation()
def initialized(digest: str, kubelet: str, config: str = CONFIG) -> Commands:
    """Ensure that `kubeadm init` has made a cluster on this host.

    + digest, kubelet: of the configuration, as `reconfigured` and `kubelet_configured` compare them
    + config: path of kubeadm's configuration on the host
    """
    state = host.get_fact(Kubeadm, socket=SOCKET)
    found = stage(state, "init")
    if found == "done":
        host.noop("this host leads a cluster")
        return
    if found == "foreign":
        yield _fail_foreign(state, "admin.conf")
        return
    old = "half-initialized" if found == "begun" else None
    changes.record(Change(subject="control plane", old=old, new="initialized by kubeadm init"))
    if found == "begun":
        warn("an earlier kubeadm init did not end: resetting what it left and beginning again")
        yield StringCommand(RESET)
    yield StringCommand(
        f"mkdir -p /etc/gpuboot && touch {marker('init')} &&",
        "{ kubeadm init --skip-token-print --config",
        QuoteString(config),
        f"|| {_failed('init')}; }}",
        f"&& {note(digest)} && {note_kubelet(kubelet)} && rm {marker('init')}",
    )


def _fail_foreign(state: KubeadmState, missing: str) -> FunctionCommand:
    return fail(
        f"there are parts of a cluster in /etc/kubernetes ({', '.join(state.files)}), but no "
        f"{missing}, and gpuboot did not make them",
        "look what they are; if nobody needs them: pyinfra INVENTORY deploys/reset.py --data "
        "gpuboot_reset=CLUSTER",
    )


def note(digest: str) -> str:
    """The command that records which configuration is in force in the cluster."""
    return (
        f"{KUBECTL} -n kube-system annotate --overwrite configmap kubeadm-config {DIGEST}={digest}"
    )


def note_kubelet(digest: str) -> str:
    """The command that records which configuration is in force on this host."""
    return f"echo {digest} >{_KUBELET_NOTE}"


@operation()
def kubeconfig() -> Commands:
    """Ensure that root on this host can use kubectl; a kubeconfig of another cluster stays."""
    state = host.get_fact(Kubeadm, socket=SOCKET)
    if state.kubeconfig == "same":
        host.noop("root's kubeconfig is the cluster's")
        return
    if state.kubeconfig == "other" and "admin.conf" in state.files:
        message = "/root/.kube/config is for another cluster and stays"
        warn(f"{message}: use /etc/kubernetes/admin.conf")
        host.noop(message)
        return
    old = None if state.kubeconfig == "absent" else state.kubeconfig
    new = "the cluster's administrator"
    changes.record(Change(subject="file /root/.kube/config", old=old, new=new))
    yield StringCommand("install -D -m 0600 /etc/kubernetes/admin.conf /root/.kube/config")


@operation()
def joined(
    node: Node,
    leader: str,
    kubelet: str,
    join_config: Callable[[str, str, str], str],
    init_config: Callable[[str], str],
) -> Commands:
    """Ensure that this host is a node of the leader's cluster.

    Its credential is made for this join alone, travels by standard input and ends with it.

    + leader: inventory name of the leader
    + kubelet: digest of the kubelet's configuration
    + join_config: gives kubeadm's configuration of this node, which is secret, for the pin of the
      cluster's certificate authority, a bootstrap token and a certificate key ("" on a worker)
    + init_config: gives the leader's, by which it uploads its certificates, for that key
    """
    state = host.get_fact(Kubeadm, socket=SOCKET)
    found = stage(state, "join")
    if found == "done":
        yield from _same_cluster(leader)
        return
    if found == "foreign":
        yield _fail_foreign(state, "kubelet.conf")
        return
    old = "half-joined" if found == "begun" else None
    changes.record(Change(subject=f"node {node.name}", old=old, new="joined to the cluster"))
    if found == "begun":
        warn("an earlier kubeadm join did not end: resetting what it left and beginning again")
        yield StringCommand(RESET)
    if not executing():
        yield StringCommand("kubeadm join")  # how it is done needs the leader, which may not exist
        return
    try:
        target = host.state.inventory.get_host(leader)
        yield from _join(node, target, kubelet, join_config, init_config)
    except remote.RemoteError as error:
        yield fail(f"the leader cannot prepare the join: {error}", "run again")


def _same_cluster(leader: str) -> Commands:
    if executing():
        target = host.state.inventory.get_host(leader)
        authority = remote.read_fact(target, Kubeadm, socket=SOCKET).ca
        if belongs_elsewhere(host.get_fact(Kubeadm, socket=SOCKET), authority):
            yield fail(
                f"this host is a node of another cluster than {leader}'s",
                "take it out of the inventory, or, if that cluster can go: pyinfra INVENTORY "
                f"deploys/reset.py --data gpuboot_reset=CLUSTER --limit {host.name}",
            )
            return
    host.noop("this host is a node of the cluster")


def _forget(leader: Host, node: str, address: str) -> tuple[str, str] | None:
    """Remove what the cluster still knows of this host's earlier membership.

    Returns cause and remedy when the name is another machine's, which kubeadm refuses as well.
    """
    known = remote.read_fact(leader, Cluster, kubeconfig=ADMIN_CONF).nodes
    old = next((item for item in known if item.name == node), None)
    if old is None:
        return None
    if address not in old.address.split():
        return (
            f"the cluster has a node {node} already, at {old.address}",
            "give this host another node_name, or, if that machine is gone: kubectl delete node "
            + node,
        )
    remote.run(leader, f"{KUBECTL} delete node {shlex.quote(node)}")
    return None


def _join(
    node: Node,
    leader: Host,
    kubelet: str,
    join_config: Callable[[str, str, str], str],
    init_config: Callable[[str], str],
) -> Commands:
    if taken := _forget(leader, node.name, node.address):
        yield fail(*taken)
        return
    authority = remote.read_fact(leader, Kubeadm, socket=SOCKET).ca
    command = (
        f"mkdir -p /etc/gpuboot && touch {marker('join')} &&"
        f" {{ cat | kubeadm join --config /dev/stdin || {_failed('join')}; }} &&"
        f" {note_kubelet(kubelet)} && rm {marker('join')}"
    )
    with bootstrap_token(leader, node.name) as token:
        if node.role == "worker":
            yield StringCommand(command, _stdin=join_config(authority, token.value, ""))
            return
        key = secrets.token_hex(32)
        with uploaded_certificates(leader, init_config(key)):
            yield StringCommand(command, _stdin=join_config(authority, token.value, key))


@operation()
def installed(packages: dict[str, str], manager: PackageManager) -> Commands:
    """Ensure that Kubernetes' packages are there and held at their versions.

    A host that is part of a cluster keeps the versions it has: `upgraded` changes those, one
    host at a time.

    + packages: as `gpuboot.kubernetes.kubeadm.packages` gives them
    + manager: the program that installs them
    """
    state = host.get_fact(Kubeadm, socket=SOCKET)
    member = "kubelet.conf" in state.files
    wanted = {
        name: "" if member and name in state.packages else pattern
        for name, pattern in packages.items()
    }
    if not state.enabled:
        changes.record(Change(subject="unit kubelet.service", field="boot", new="enabled"))
    yield from package_operations.installed._inner(wanted, manager, hold=True)
    if not state.enabled:
        yield StringCommand("systemctl enable kubelet")


@operation()
def reset(node: str, leader: str) -> Commands:
    """Take this host out of any cluster: what kubeadm and the pod network made goes.

    The cluster's data (etcd) goes as well. Packages, containerd and the driver stay.

    + node: its Kubernetes name, which a cluster that goes on forgets
    + leader: inventory name of the leader
    """
    state = host.get_fact(Kubeadm, socket=SOCKET)
    if not state.files and not state.started:
        host.noop("this host is in no cluster")
        return
    note = "all of its pods end; the cluster's data (etcd) is deleted where it is kept"
    changes.record(
        Change(subject=f"node {node}", old="member of a cluster"),
        Effect(kind="restart", target="kubelet", local=True, note=note, gpu_pods=None),
    )
    if state.kubeconfig in ("same", "stale"):
        yield StringCommand("rm -f /root/.kube/config")
    yield StringCommand(RESET)
    yield StringCommand(f"sh -ec {shlex.quote(_CLEAN)}")
    if executing() and host.name != leader:
        try:
            forget = f"{KUBECTL} delete node {shlex.quote(node)} --ignore-not-found"
            remote.run(host.state.inventory.get_host(leader), forget)
        except PyinfraError as error:
            warn(f"the leader still knows node {node}: {error}")
