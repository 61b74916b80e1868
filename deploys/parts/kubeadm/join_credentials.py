"""What a node needs to join a cluster, made on the leader for that join alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pyinfra.api.host import Host

from deploys.engine.remote import run
from deploys.parts.cluster.kubectl import KUBECTL
from gpuboot.cluster.tokens import BootstrapToken, new_token, token_manifest


@contextmanager
def bootstrap_token(leader: Host, node: str) -> Iterator[BootstrapToken]:
    """A credential for one node's join, which ends with the block.

    The node can use it as soon as the leader has signed its cluster information with it.
    """
    token = new_token()
    signed = f"jsonpath={{.data.jws-kubeconfig-{token.id}}}"
    wait = (
        f"for _ in $(seq 150); do"
        f" if {KUBECTL} -n kube-public get configmap cluster-info -o '{signed}' | grep -q .;"
        f" then exit 0; fi; sleep 0.2; done; echo 'token was not signed in 30 s' >&2; exit 1"
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
    redirection = ">/dev/null"  # it prints the key
    command = (
        f"cat | kubeadm init phase upload-certs --upload-certs --config /dev/stdin {redirection}"
    )
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
