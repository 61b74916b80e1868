"""The control plane's certificates: renewed before they expire, and after."""

import shlex
from collections.abc import Sequence

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, shell_failure
from deploys.engine.operation import operation
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.cluster.kubectl import KUBECTL
from deploys.parts.etcd import operations as etcd_backup
from deploys.parts.etcd.members import wait_for_etcd
from deploys.parts.files import operations as files
from deploys.parts.kubeadm.change_operations import CONTROL_PLANE
from gpuboot.cluster import node_certificates
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.kubeadm import CRICTL, SOCKET
from gpuboot.cluster.node_certificates import Certificate
from gpuboot.plan import Change

# processes read their certificates when they start; an API server and its clients after etcd
_PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_MARK = "/etc/gpuboot/certificates.renewed"
_CONFIG = "/etc/gpuboot/kubeadm-certificate.yaml"
_STARTS_S = 120

# The kubelet starts a container of a static pod again, whether the API server answers or not.
_RESTART = f"""
crictl() {{ command {CRICTL} "$@"; }}
old=$(crictl ps -q --state running --name "^$part$")
for id in $old; do crictl stop --timeout 20 "$id" >/dev/null; done
end=$(($(date +%s) + {_STARTS_S}))
until new=$(crictl ps -q --state running --name "^$part$") && [ -n "$new" ] && [ "$new" != "$old" ]
do
  [ "$(date +%s)" -lt "$end" ] || {{ echo "$part did not start again" >&2; exit 1; }}
  sleep 1
done
"""
_ANSWERS = f"""
end=$(($(date +%s) + {_STARTS_S}))
until said=$({KUBECTL} --request-timeout=5s get --raw /readyz 2>&1); do
  [ "$(date +%s)" -lt "$end" ] || {{ printf '%s\\n' "$said" >&2; exit 1; }}
  sleep 1
done
"""
# kubeadm keeps a certificate that is there; the API server serves with the last one that it read
_NEW_PAIR = f"""
cd /etc/kubernetes/pki
for end in crt key; do
  if [ -e apiserver.$end ]; then mv apiserver.$end apiserver.$end.gpuboot-old; fi
done
kubeadm init phase certs apiserver --config {_CONFIG} || {{
  for end in crt key; do mv -f apiserver.$end.gpuboot-old apiserver.$end; done
  exit 1
}}
rm -f apiserver.*.gpuboot-old {_CONFIG}
"""
_REMEDY = "see `crictl ps -a` and the log of what does not run, then run again: it goes on there"


@operation()
def renewed(days: int, control_planes: Sequence[str]) -> Commands:
    """Ensure that no certificate of this control-plane node expires soon; with `_serial=True`.

    What uses them is restarted, one after the other. It needs no API server that answers: expired
    ones are renewed as well.

    + days: a certificate that expires within them is renewed, and all others with it
    + control_planes: inventory names of those with a member of etcd
    """
    state = read(Kubeadm, socket=SOCKET)
    due_certificates = node_certificates.due(state.certificates, state.clock, days)
    controls = "manifests/kube-apiserver.yaml" in state.files and not state.started
    if not controls or not (due_certificates or state.restart_due):
        host.noop("no certificate of the control plane expires soon")
        return
    _record(due_certificates, state)
    late = node_certificates.expired(due_certificates, state.clock)
    # members whose certificates have expired trust each other no more: there is nothing to wait for
    healthy = FunctionCommand(wait_for_etcd, (list(control_planes), 0), {})
    if due_certificates and not late:
        yield healthy
        yield etcd_backup.before("certificates")
    if due_certificates:
        # the mark first: a run that is killed here leaves what the next one restarts
        yield StringCommand(f"mkdir -p /etc/gpuboot && touch {_MARK} && kubeadm certs renew all")
    if late:
        # what fails for want of a certificate is started again after minutes, unless it forgets
        yield StringCommand("systemctl restart kubelet")
    for part in _PARTS:
        yield _restarted(part)
    # until most members have certificates that are valid again, no API server answers
    if len(control_planes) == 1 or not late:
        yield _answered()
    if len(control_planes) > 1 and not late:
        yield healthy
    yield StringCommand(f"rm {_MARK}")


@operation()
def address_covered(address: str, config: str) -> Commands:
    """Ensure that the certificate of this control plane's API server names an address as well.

    The API server reads it again by itself, so nothing is restarted.

    + address: IP address by which clients reach it
    + config: kubeadm's configuration with this node in the leader's place
    """
    state = read(Kubeadm, socket=SOCKET)
    serving = next(
        (item for item in state.certificates if item.name == node_certificates.SERVING), None
    )
    controls = "manifests/kube-apiserver.yaml" in state.files and not state.started
    if not controls or (serving and address in serving.names):
        host.noop(f"the API server's certificate names {address}")
        return
    changes.record(Change(subject="API server's certificate", field="names", new=address))
    yield files.write(_CONFIG, config, "600")
    failed = shell_failure("kubeadm made no certificate for the API server", "run again")
    yield StringCommand(_script(_NEW_PAIR), "||", failed)


def _record(due_certificates: Sequence[Certificate], state: KubeadmState) -> None:
    if not due_certificates:
        note = "renewed, but not all that use them were restarted"
        changes.record(Change(subject="control plane's certificates", old=note, new="in use"))
    for item in due_certificates:
        has_expired = item.expires <= state.clock
        old = f"{'expired' if has_expired else 'expires'} {item}"
        changes.record(Change(subject="control plane's certificates", old=old, new="renewed"))
    changes.record(*CONTROL_PLANE)


def _restarted(part: str) -> StringCommand:
    failed = shell_failure(f"{part} does not run with its new certificates", _REMEDY)
    return StringCommand(_script(f"part={part}\n{_RESTART}"), "||", failed)


def _answered() -> StringCommand:
    failed = shell_failure("the API server does not answer with its new certificates", _REMEDY)
    return StringCommand(_script(_ANSWERS), "||", failed)


def _script(text: str) -> str:
    return f"sh -ec {shlex.quote(text)}"
