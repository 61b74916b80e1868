"""Changing a living cluster: other settings, one host at a time."""

import shlex
from collections.abc import Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing, fail, shell_failure
from deploys.engine.operation import operation
from deploys.engine.waiting import unfinished, wait_until
from deploys.parts.cluster.api_silence import looked
from deploys.parts.cluster.fact import Cluster, Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.etcd import operations as etcd_backup
from deploys.parts.kubeadm.operations import CONFIG, KUBELET_FILE, note, note_kubelet
from gpuboot.cluster import metrics_server
from gpuboot.cluster.cluster_state import ClusterState, KubeadmState, immutable_changes
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.cluster.kubelet_in_force import FLAGS_FILE, stray_flags, without_stray_flags
from gpuboot.cluster.readiness import Progress, kubelet_is, nodes_ready
from gpuboot.plan import Change, Effect

_RUN_ON = "running pods go on"
_SERVED_S = 120
_SERVING = "/var/lib/kubelet/pki/kubelet-server-current.pem"
KUBELET = Effect(kind="restart", target="kubelet", local=True, note=_RUN_ON)
CONTROL_PLANE = (
    Effect(
        kind="restart",
        target="control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)",
        local=True,
        note="pods run on; with one control-plane node the API does not answer for some seconds",
    ),
)


@operation()
def immutable_settings_kept(settings: dict[str, str]) -> Commands:
    """Make sure that the cluster was made with these settings; changes nothing. On the leader.

    Preflight has compared them where the cluster answered; this is for one that answers only now,
    before anything is written that follows from them.

    + settings: of the configuration, see `gpuboot.cluster.kubeadm.Configuration`
    """
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    is_comparable = executing() or not state.error
    if is_comparable and (problems := immutable_changes(state.immutable, settings)):
        yield fail(
            f"a living cluster cannot change this: {'; '.join(problems)}",
            "put the settings back, or reset the cluster (pyinfra INVENTORY deploys/reset.py "
            "--data gpuboot_reset=CLUSTER) and run again",
        )
        return
    host.noop("there is no cluster yet" if state.error else "the settings are those of the cluster")


@operation()
def reconfigured(digest: str, kubelet: str = "", config: str = CONFIG) -> Commands:
    """Ensure that the control plane and kube-proxy run as the configuration says. On the leader.

    The cluster's record says what was put in force last, by whichever host led then; this host's
    own says whether that was while it answered.

    + digest, kubelet: of the configuration, see `gpuboot.cluster.kubeadm.Configuration`
    """
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    if state.error and not executing():
        host.noop("there is no cluster yet")
        return
    kubelet_digest = read(Kubeadm, socket=SOCKET).kubelet_config
    if state.config == digest and (not kubelet or kubelet_digest in (digest, kubelet)):
        host.noop("the cluster's configuration is in force")
        return
    changes.record(
        _configuration_change(state, digest),
        *CONTROL_PLANE,
        Effect(kind="restart", target="DaemonSet kube-system/kube-proxy", note=_RUN_ON),
    )
    yield etcd_backup.before("reconfigure")
    path = shlex.quote(config)
    for phase in ("upload-config all", "etcd local", "control-plane all", "addon kube-proxy"):
        yield StringCommand(f"kubeadm init phase {phase} --config {path}")
    yield StringCommand(f"{KUBECTL} -n kube-system rollout restart daemonset kube-proxy")
    yield StringCommand(note(digest))


def _configuration_change(state: ClusterState, digest: str) -> Change:
    if not state.error and not state.recorded:
        name = "ConfigMap kube-system/kubeadm-config"
        return Change(subject=name, old="deleted", new="created again")
    subject, old = "control plane's configuration", state.config[:12] or None
    return Change(subject=subject, field="sha256", old=old, new=digest[:12])


@operation()
def kubelet_configured(
    node: str,
    leader: str,
    digest: str,
    control_plane: bool = False,
    ignore: Sequence[str] = (),
    also: str = "",
    signed: bool = False,
) -> Commands:
    """Ensure that this host runs as the cluster's configuration says; call it with `_serial=True`.

    + digest: of the part of the configuration that concerns this host
    + ignore: kubeadm's checks to pass over
    + control_plane: its control plane as well as its kubelet, which on the leader is done before
    + also: another digest that is as good
    + signed: the kubelet is to serve by a certificate of the cluster's, which must be approved
    """
    state = read(Kubeadm, socket=SOCKET)
    in_force = state.kubelet_config in (digest, also or digest) and not state.kubelet_edited
    stray = stray_flags(state.kubelet_flags)
    if "kubelet.conf" not in state.files or state.started or (in_force and not stray):
        host.noop("the kubelet's configuration is in force")
        return
    changes.record(
        *([] if in_force else [_kubelet_change(node, state, digest)]),
        *[Change(subject=f"kubelet's flags in {FLAGS_FILE}", old=flag) for flag in stray],
        *(CONTROL_PLANE if control_plane and not in_force else ()),
        KUBELET,
    )
    yield from _approver_running(leader) if signed else ()
    if stray:
        text = QuoteString(without_stray_flags(state.kubelet_flags))
        yield StringCommand("printf '%s\\n'", text, f"> {FLAGS_FILE}")
    if control_plane and not in_force:
        yield StringCommand("kubeadm upgrade node", *ignored(ignore))
    elif not in_force:
        yield StringCommand("kubeadm upgrade node phase kubelet-config")
    yield from _restarted(node, leader, signed)
    yield StringCommand(note_kubelet(digest))


def _restarted(node: str, leader: str, signed: bool) -> Commands:
    since = clock(leader)
    yield StringCommand("systemctl restart kubelet")
    yield from wait_until_ready(node, leader, "", since)
    if signed:
        yield _served(node)


def _approver_running(leader: str) -> Commands:
    """Wait for what approves a kubelet's certificate: without it logs and exec would end."""
    if not executing():
        return
    target = host.state.inventory.get_host(leader)
    end = wait_until(
        host,
        lambda: looked(target, lambda state: metrics_server.ready(state, metrics_server.APPROVER)),
        300,
    )
    if not end.complete:
        default = f"see `kubectl -n {metrics_server.NAMESPACE} get pods,events`, then run again"
        yield fail(*unfinished(end, 300, default))


def _served(node: str) -> StringCommand:
    """Wait until the kubelet has its certificate, by which it answers logs, exec and metrics."""
    failure = shell_failure(
        f"the kubelet of {node} has no certificate of the cluster after {_SERVED_S} s",
        f"see `kubectl get csr` and `kubectl -n {metrics_server.NAMESPACE} logs "
        f"deployment/{metrics_server.APPROVER}`; `kubectl certificate approve NAME` approves a "
        "request, then run again",
    )
    return StringCommand(
        f"for _ in $(seq {_SERVED_S}); do [ ! -s {_SERVING} ] || break; sleep 1; done; "
        f"[ -s {_SERVING} ] ||",
        failure,
    )


def _kubelet_change(node: str, state: KubeadmState, digest: str) -> Change:
    subject = f"kubelet's configuration of {node}"
    if state.kubelet_edited:
        edited, generated = "changed by hand", "as kubeadm writes it"
        return Change(subject=subject, field=KUBELET_FILE, old=edited, new=generated)
    old = state.kubelet_config[:12] or None
    return Change(subject=subject, field="sha256", old=old, new=digest[:12])


def clock(leader: str) -> float | None:
    """Now, by the leader's clock; None where the API server does not answer, and in a plan."""
    if not executing():
        return None
    target = host.state.inventory.get_host(leader)
    return remote.read_fact(target, Cluster, kubeconfig=ADMIN_CONF).clock or None


def wait_until_ready(node: str, leader: str, version: str, since: float | None) -> Commands:
    """Wait until the node is Ready again, with this version of the kubelet where it is given.

    + since: when its kubelet was restarted: what was known before does not count
    """
    if not executing():
        return
    target = host.state.inventory.get_host(leader)

    def look(state: ClusterState) -> Progress:
        if version:
            return kubelet_is(state, node, version, since)
        return nodes_ready(state, [node], since)

    end = wait_until(host, lambda: looked(target, look), 300)
    if not end.complete:
        remedy = "see `journalctl -u kubelet` on the node, then run again"
        yield fail(*unfinished(end, 300, remedy))


def ignored(checks: Sequence[str]) -> list[QuoteString]:
    """kubeadm's option for checks to pass over; nothing for none."""
    return [QuoteString(f"--ignore-preflight-errors={','.join(checks)}")] if checks else []
