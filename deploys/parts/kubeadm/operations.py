"""Packages and images of Kubernetes, `kubeadm init` and `kubeadm reset`."""

import shlex
from collections.abc import Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import host

from deploys.engine import background, changes, remote
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, executing, warn
from deploys.engine.download_retries import with_retries
from deploys.engine.operation import operation
from deploys.parts.api_endpoint import (
    operations as api_endpoint,
)
from deploys.parts.api_endpoint import (
    virtual_address_operations as virtual_address,
)
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.cluster.kubectl import KUBECTL
from deploys.parts.kernel import operations as kernel
from deploys.parts.kubeadm.kubeadm_steps import (
    CLEAN_NETWORK,
    RESET,
    begin,
    cni_first,
    fail_foreign,
    marker,
    refused_step,
    remains_reset,
    unfinished_step,
)
from deploys.parts.packages import operations as package_operations
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.cluster.backup import METRICS_FOLDER
from gpuboot.cluster.cluster_state import KubeadmState, Step, stage
from gpuboot.cluster.kubeadm import CRICTL, SOCKET
from gpuboot.cluster.manifests import DIGEST
from gpuboot.hosts.platforms import PackageManager
from gpuboot.plan import Change, Effect

KUBELET = "kubelet.service"
CONFIG = "/etc/gpuboot/kubeadm.yaml"
_CTR_PULL = f"ctr -a {SOCKET} -n k8s.io images pull --hosts-dir /etc/containerd/certs.d"
_PULL_UNIT = ("gpuboot-pull", "gpuboot: pull images")
KUBELET_FILE = "/var/lib/kubelet/config.yaml"
KUBELET_NOTE = "/etc/gpuboot/kubelet-config.sha256"
# a metric that stays would tell of a control plane for as long as the machine is some node
_METRICS = f"{METRICS_FOLDER}/gpuboot_etcd_backup_*"
_FORGET = f"rm -rf /etc/gpuboot/kube* /etc/gpuboot/cordoned /etc/gpuboot/helm {_METRICS}"


@operation()
def images_fetched(images: Sequence[str]) -> Commands:
    """Start pulls of images in the background, on a host that is not part of the cluster yet.

    It needs containerd alone, not crictl: so packages can be installed meanwhile. ctr knows
    containerd's mirrors, but not its passwords; what it cannot have, `images_pulled` pulls.
    """
    state = read(Kubeadm, socket=SOCKET)
    missing = [image for image in images if image not in state.images]
    if state.files or not missing:
        host.noop("no images are to be pulled ahead")
        return
    changes.record(
        Change(subject="containerd's images", new=f"{len(missing)} pulled in the background")
    )
    pull = "; ".join(f"{_CTR_PULL} {image} >/dev/null" for image in missing)
    yield background.started(*_PULL_UNIT, pull)


@operation()
def images_pulled(images: Sequence[str], config: str = "") -> Commands:
    """Ensure that a host that is not part of the cluster yet has the images of its first pods.

    + images: what a joining host needs; pulled in the background, while the leader is at work
    + config: on the leader: kubeadm's configuration, whose images are pulled before going on
    """
    state = read(Kubeadm, socket=SOCKET)
    step: Step = "init" if config else "join"
    missing = [image for image in images if image not in state.images]
    if stage(state, step) == "done" or not (missing or config):
        host.noop("the images are there already")
        return
    images = "the control plane's images" if config else f"{len(missing)} images"
    changes.record(Change(subject="containerd's images", new=images))
    if config:
        # Not `kubeadm config images pull`: it asks the registry even for images that are there.
        fetch = f"{CRICTL} inspecti -q {{}} >/dev/null 2>&1 || {CRICTL} pull {{}}"
        command = StringCommand(
            "kubeadm config images list --config", QuoteString(config),
            "| xargs -P 4 -I {} sh -c", QuoteString(fetch),
        )  # fmt: skip
        yield with_retries(command, "the control plane's images")
        return
    pull = "; ".join(f"{CRICTL} pull {image}" for image in missing)
    yield background.started(*_PULL_UNIT, pull)


@operation()
def initialized(digest: str, kubelet: str, config: str = CONFIG) -> Commands:
    """Ensure that `kubeadm init` has made a cluster on this host.

    + digest, kubelet: of the configuration, as `reconfigured` and `kubelet_configured` compare them
    + config: path of kubeadm's configuration on the host
    """
    state = read(Kubeadm, socket=SOCKET)
    progress = stage(state, "init")
    if progress == "done":
        host.noop("the control plane is initialized")
        return
    if progress == "foreign":
        yield fail_foreign(state)
        return
    old = "half-initialized" if progress == "begun" else None
    changes.record(Change(subject="control plane", old=old, new="initialized by kubeadm init"))
    yield from remains_reset(state, "init")
    yield from cni_first(state)
    yield StringCommand(
        "{ kubeadm init phase preflight --config",
        QuoteString(config),
        f"|| {refused_step('init')}; }} && {begin('init')} &&",
        "{ kubeadm init --skip-token-print --skip-phases=preflight --config",
        QuoteString(config),
        f"|| {unfinished_step('init')}; }}",
        f"&& {note(digest)} && {note_kubelet(kubelet)} && rm {marker('init')}",
    )


def note(digest: str) -> str:
    """The command that records which configuration is in force in the cluster."""
    return (
        f"{KUBECTL} -n kube-system annotate --overwrite configmap kubeadm-config {DIGEST}={digest}"
    )


def note_kubelet(digest: str) -> str:
    """The command that records which configuration is in force on this host, and its file."""
    file_digest = f'"$(sha256sum <{KUBELET_FILE} | cut -d " " -f 1)"'
    return f"echo {digest} {file_digest} >{KUBELET_NOTE}"


@operation()
def kubeconfig() -> Commands:
    """Ensure that root on this host can use kubectl; a kubeconfig of another cluster stays."""
    state = read(Kubeadm, socket=SOCKET)
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
def installed(packages: dict[str, str], manager: PackageManager) -> Commands:
    """Ensure that Kubernetes' packages are there, held at their versions, and the kubelet enabled.

    A host that is part of a cluster keeps the versions it has: `upgraded` changes those, one
    host at a time. On such a host the kubelet runs as well, whoever has stopped it.

    + packages: as `gpuboot.cluster.kubeadm.packages` gives them
    + manager: the program that installs them
    """
    foresee(
        [
            (host, Kubeadm, {"socket": SOCKET}),
            package_operations.question(host, packages, manager),
            (host, Units, {"units": [KUBELET]}),
        ]
    )
    state = read(Kubeadm, socket=SOCKET)
    member = "kubelet.conf" in state.files
    versions = {
        name: "" if member and name in state.packages else pattern
        for name, pattern in packages.items()
    }
    yield from package_operations.installed._inner(versions, manager, hold=True)
    # what a killed init or join left is reset, which stops the kubelet
    half_made = {"init", "join"} & set(state.started)
    yield from units.ensured([KUBELET], started=member and not half_made)


def reset_commands(state: KubeadmState) -> list[str]:
    """The commands that take a host out of gpuboot's cluster. Nothing for one that is in none."""
    if state.foreign or not (state.files or state.started or state.left):
        return []
    is_own_kubeconfig = state.kubeconfig in ("same", "stale")
    config = ["rm -f /root/.kube/config"] if is_own_kubeconfig else []
    # the virtual address first: another control plane has it before this one's API server ends
    first = [virtual_address.STOP, *config]
    return [*first, RESET, CLEAN_NETWORK, api_endpoint.STOP, kernel.SWAP_BACK, _FORGET]


@operation()
def reset(node: str, leader: str) -> Commands:
    """Take this host out of the cluster: what kubeadm and the pod network made goes.

    The cluster's data (etcd) goes as well. Packages, containerd and the driver stay, as does a
    cluster that gpuboot did not make.

    + node: its Kubernetes name, which a cluster that goes on forgets
    + leader: inventory name of the leader
    """
    state = read(Kubeadm, socket=SOCKET)
    if state.foreign:
        yield fail_foreign(state)
        return
    if not reset_commands(state):
        host.noop("this host is in no cluster")
        return
    note = "all of its pods end; the cluster's data (etcd) is deleted where it is kept"
    changes.record(
        Change(subject=f"node {node}", old="member of a cluster"),
        Effect(kind="restart", target="kubelet", local=True, note=note, gpu_pods=None),
    )
    yield from map(StringCommand, reset_commands(state))
    if executing() and host.name != leader:
        try:
            forget = f"{KUBECTL} delete node {shlex.quote(node)} --ignore-not-found"
            remote.run(host.state.inventory.get_host(leader), forget)
        except PyinfraError as error:
            warn(f"the leader still knows node {node}: {error}")
