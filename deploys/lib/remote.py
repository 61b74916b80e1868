"""Reaching the leader from another host's operation, while the run executes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from gevent.lock import BoundedSemaphore
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import FactBase
from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from deploys.lib import privilege
from deploys.lib.shell import ask
from gpuboot.kubernetes.kubeadm import BootstrapToken, new_token, token_manifest

ADMIN = "/etc/kubernetes/admin.conf"
KUBECTL = f"kubectl --kubeconfig {ADMIN}"
# what follows is the manifest's file, or - for standard input
APPLY = f"{KUBECTL} apply --server-side --force-conflicts --field-manager gpuboot -f"
# sshd allows ten sessions a connection (MaxSessions), and all joining nodes share this one.
_sessions = BoundedSemaphore(6)

T = TypeVar("T")


class RemoteError(PyinfraError):
    """A command on another host failed; the text holds its output."""


def run(target: Host, command: str, stdin: str = "") -> str:
    """Run a shell command on any host of the inventory and return its standard output.

    + target: the host, which need not be the one whose operation this is
    + command: shown in errors, so it must hold no secret
    + stdin: what the command reads; may be secret, and is shown nowhere

    Raises `RemoteError` when it exits with anything but 0.
    """
    with _sessions, ctx_host.use(target):
        if not target.connected:  # outside `--limit`
            target.connect(raise_exceptions=True)
        arguments = privilege.arguments(target)
        if stdin:
            arguments["_stdin"] = stdin
        done = ask(target, command, print_output=False, print_input=False, **arguments)
    if not done.ok:
        raise RemoteError(f"{target.name}: {command}: {done.said}")
    return done.stdout


def read(target: Host, fact: type[FactBase[T]], **arguments: object) -> T:
    """A fact of any host of the inventory."""
    with _sessions, ctx_host.use(target):
        return target.get_fact(fact, **arguments)


@contextmanager
def bootstrap_token(leader: Host, node: str) -> Iterator[BootstrapToken]:
    """A credential for one node's join, which ends with the block.

    The node can use it as soon as the leader has signed its cluster information with it.
    """
    token = new_token()
    signed = f"jsonpath={{.data.jws-kubeconfig-{token.id}}}"
    wait = (
        f"for _ in $(seq 60); do"
        f" if {KUBECTL} -n kube-public get configmap cluster-info -o '{signed}' | grep -q .;"
        f" then exit 0; fi; sleep 0.5; done; echo 'token was not signed in 30 s' >&2; exit 1"
    )
    manifest = token_manifest(token, node, datetime.now(UTC))
    run(leader, f"{KUBECTL} create -f - >/dev/null && {wait}", stdin=manifest)
    try:
        yield token
    finally:
        run(leader, f"{KUBECTL} -n kube-system delete secret bootstrap-token-{token.id}")


@contextmanager
def uploaded_certificates(leader: Host, config: str) -> Iterator[None]:
    """The control plane's certificates, encrypted in the cluster for the length of the block.

    + config: `init_config` with the certificate key
    """
    quiet = ">/dev/null"  # it prints the key
    command = f"cat | kubeadm init phase upload-certs --upload-certs --config /dev/stdin {quiet}"
    run(leader, command, stdin=config)
    try:
        yield
    finally:
        # kubeadm ties them to a token of two hours; that goes as well.
        owner = "-o 'jsonpath={.metadata.ownerReferences[*].name}'"
        run(
            leader,
            f"owner=$({KUBECTL} -n kube-system get secret kubeadm-certs {owner}) &&"
            f" {KUBECTL} -n kube-system delete secret kubeadm-certs $owner",
        )
